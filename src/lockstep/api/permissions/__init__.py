"""What each part of Lockstep may do, in one table.

The embedded API server's roles and the Helm chart's are both made from it. A test runs the parts
with these rights alone and holds the requests that they made against it, so that nothing is missing
here and nothing is granted for nothing.
"""
