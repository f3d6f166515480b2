"""The broker's side of the coordinators' ports: its partitions as an internal topic that is written and read
back, and its clock as one that does not jump.
"""
