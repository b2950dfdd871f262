"""The way through a fresh process, for a forked child.

channel   what a transport uses, here
shared    the one relay of a process
link      the other process, and the calls that it makes for us
launch    how it is started
frames    what the two say to each other
process   what the other one does
"""
