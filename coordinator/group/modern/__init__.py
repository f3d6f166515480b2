"""What groups of the newer protocols have in common: consumer groups (KIP-848) and share groups (KIP-932).

Their state is what their records say and nothing else: `tables` holds it (group epoch, members, target
assignment, current assignment), `records` reads and writes it. `target` has members assigned anew, `topics`
tells subscriptions apart from what exists, `sessions` watches who is still there.
"""
