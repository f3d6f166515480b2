"""`python -m bench` (`make bench`): what a request, a megabyte, a connection and a partition cost.

A figure means something beside another of the same run only: against the floors (a bare echo server, a
bare read-and-write loop, a bare sendfile), or against another broker measured in turns. One file for each
load. Needs Linux: epoll for the clients, /proc for the brokers' CPU time and memory.
"""
