"""Groups in virtual time: real coordinators, a simulated log, clients that behave and fail like real ones."""
