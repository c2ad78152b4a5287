"""When to start, wait, try again, clean up and delete: functions of (job, observed, now). Pure.

`mpijob` and `trainjob` have the same files where they answer the same question; what both use lies
beside them.
"""
