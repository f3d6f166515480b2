"""Groups as a client sees them: their coordinators, descriptions, offsets, and membership in one.

Blocking, on `ottla.client`; for our tools and for what they share. Nothing here prints.
"""
