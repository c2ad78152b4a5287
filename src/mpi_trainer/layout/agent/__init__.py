"""The agent: what runs in a job's pods beside the job itself, and what it is given. Pure.

A few POSIX sh scripts, delivered as files of the Layout, do for every MPI and any user what images
cannot: an sshd for a user without a name, waiting for workers, heartbeats, and the truth about
every rank. They need a shell, the usual small programs and OpenSSH, and nothing else.
"""
