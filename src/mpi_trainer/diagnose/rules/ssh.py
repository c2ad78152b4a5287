"""SSH and names: what keeps mpirun from its workers."""

from __future__ import annotations

from typing import Final

from mpi_trainer.diagnose.rules.model import (
    HINT,
    HOST,
    LOST,
    SPECIFIC,
    STARTUP,
    Cause,
    Detail,
    Rule,
    said,
)

_SSH = ("SshFailed",)
_DAEMON = r"(?:orted|prted|hydra_pmi_proxy|hydra_bstrap_proxy|pmi_proxy)"

CAUSES: Final = (
    Cause(
        "SshFailed",
        "mpirun cannot reach a worker by SSH",
        "Intel MPI runs ssh with -q, so that only its exit code is known: refused, no such name, "
        "no key, or no answer.",
        "Try it from the launcher: `odh mpijob exec NAME --launcher -- ssh WORKER true`, and read "
        "what ssh says.",
    ),
    Cause(
        "SshConnectionRefused",
        "No SSH server listens on a worker",
        "The worker runs, but its sshd has not started or has ended, or listens on another port; "
        "or a NetworkPolicy rejects connections to it.",
        "Look at the worker's log with `odh mpijob logs NAME`; leave the workers' `command` empty "
        "so that the job's own sshd runs, or start sshd in it. Allow connections among the job's "
        "pods in NetworkPolicies.",
        _SSH,
    ),
    Cause(
        "SshPermissionDenied",
        "A worker refuses the launcher's key",
        "The key is not in the worker's authorized_keys, belongs to another user, or sshd "
        "distrusts the file's owner or mode.",
        "Let both sides use the job's key: remove own ~/.ssh mounts and `sshAuthMountPath`, and "
        "use one user id in launcher and workers.",
        _SSH,
    ),
    Cause(
        "SshKeyFileMode",
        "ssh ignores a private key that others can read",
        "The key file, or ssh's configuration, is readable or writable by group or others.",
        "Mount the Secret with `defaultMode: 0400`, or let the job make its own key.",
        ("SshPermissionDenied", "SshFailed"),
    ),
    Cause(
        "SshKeyInvalid",
        "ssh cannot read the private key",
        "The file is no private key, is cut, or has another line ending.",
        "Write the Secret anew with `ssh-keygen -t ecdsa`, or let the job make its own key.",
        ("SshPermissionDenied", "SshFailed"),
    ),
    Cause(
        "SshHostKeyChanged",
        "A worker shows another host key than the one that is known",
        "known_hosts holds a key of an earlier pod with the same name or address.",
        "Remove known_hosts from the image or volume, or set `StrictHostKeyChecking no` in ssh's "
        "configuration for the job's hosts.",
        _SSH,
    ),
    Cause(
        "SshHostKeyUnknown",
        "A worker's host key is not known",
        "ssh checks host keys strictly, and known_hosts has none for this worker.",
        "Set `StrictHostKeyChecking no` and `UserKnownHostsFile /dev/null` in ssh's configuration "
        "for the job's hosts.",
        ("SshHostKeyChanged", "SshFailed"),
    ),
    Cause(
        "SshConnectionClosed",
        "A worker closes SSH connections at once",
        "sshd refuses before it asks who comes: it cannot start its session, or a proxy sits in "
        "front of it.",
        'Look at the worker\'s log; with Istio set `sidecar.istio.io/inject: "false"`, and raise '
        "MaxStartups of an own sshd.",
        _SSH,
    ),
    Cause(
        "SshAccountRefused",
        "A worker's account may not log in",
        "sshd accepts the key and ends the session: the account has no login shell, is locked or "
        "expired, or may only run a command of its own.",
        "Give the user of the worker's image a shell in /etc/passwd (/bin/sh), or leave the "
        "workers' `command` empty, so that the job's own sshd and user entry are used.",
        ("SshPermissionDenied", "SshFailed"),
    ),
    Cause(
        "SshClientMissing",
        "The launcher has no ssh program",
        "mpirun starts its daemons by ssh, and the image has none where it looks.",
        "Install openssh-client in the image, or set OMPI_MCA_plm_rsh_agent or "
        "HYDRA_LAUNCHER_EXEC to the path that it has.",
    ),
    Cause(
        "SshServerFailed",
        "sshd does not start on a worker",
        "It finds no host key, no directory or no user that it wants, or may not use its port.",
        "Leave the workers' `command` empty, so that the job's own sshd runs, or give sshd host "
        "keys, a user entry and a port above 1024.",
        _SSH,
    ),
    Cause(
        "UserUnknown",
        "The user id has no name in the container",
        "OpenShift runs pods under any user id, and ssh wants an entry in /etc/passwd.",
        "Use the job's managed SSH mode, which adds the entry, or write one at the start of the "
        "image's command.",
        _SSH,
    ),
    Cause(
        "WorkerUnreachable",
        "A worker does not answer",
        "Packets to it are dropped: a network policy, a link that is down, or a node that is gone.",
        "Check the node with `kubectl get nodes`, and allow the launcher's traffic to the workers "
        "in NetworkPolicies.",
    ),
    Cause(
        "NameResolution",
        "A host name does not resolve",
        "The cluster's DNS does not know the name, or does not answer; names of pods appear a "
        "moment after the pods.",
        "Check the name and CoreDNS: `kubectl -n kube-system get pods -l k8s-app=kube-dns`, and "
        "allow port 53 in NetworkPolicies.",
    ),
    Cause(
        "MpiMissingOnWorker",
        "A worker has no MPI where mpirun looks for it",
        "mpirun starts its daemon by the same path or PATH on every worker, and there is none.",
        "Use one image for launcher and workers, or name the place with `--prefix` of mpirun.",
    ),
)

RULES: Final = (
    Rule(
        "SshConnectionRefused",
        STARTUP,
        "Connection refused",
        rf"ssh: connect to host {HOST} port \d{{1,5}}: Connection refused",
        ("ssh: connect to host n1 port 2222: Connection refused",),
    ),
    Rule(
        "WorkerUnreachable",
        STARTUP,
        "ssh: connect to host",
        rf"ssh: connect to host {HOST} port \d{{1,5}}: "
        r"(?:Connection timed out|No route to host|Network is unreachable|Operation timed out)",
        (
            "ssh: connect to host n1 port 2222: Connection timed out",
            "ssh: connect to host n1 port 22: No route to host",
        ),
    ),
    Rule(
        "SshFailed",
        STARTUP - 1,
        "ssh: connect to host",
        rf"ssh: connect to host {HOST} port \d{{1,5}}: (?!Connection|No route|Network|Operation)",
        ("ssh: connect to host n1 port 22: Cannot assign requested address",),
    ),
    Rule(
        "WorkerUnreachable",
        LOST,
        "not responding",
        rf"Timeout, server {HOST} not responding",
        ("Timeout, server n1 not responding.",),
        despite_success=True,
    ),
    Rule(
        "WorkerLost",
        LOST,
        "the connection to",
        rf": the connection to {HOST} broke",
        ("Launcher x ended with exit code 255: the connection to n1 broke",),
    ),
    Rule(
        "NameResolution",
        STARTUP,
        "Could not resolve hostname",
        rf"Could not resolve hostname {HOST}",
        ("ssh: Could not resolve hostname n9: Name or service not known",),
    ),
    Rule(
        "NameResolution",
        SPECIFIC,
        "Name or service not known",
        unless=("Could not resolve hostname",),
        examples=("socket.gaierror: [Errno -2] Name or service not known",),
    ),
    Rule(
        "NameResolution",
        SPECIFIC,
        "name resolution",
        r"[Tt]emporary failure in name resolution|name resolution failed",
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution",),
        unless=("Could not resolve hostname",),
    ),
    *said(
        "NameResolution",
        SPECIFIC,
        "No address associated with hostname",
        "nodename nor servname provided",
        "Could not resolve host:",
        "getaddrinfo failed",
        "Failed to resolve '",
        "unable to resolve host address",
        "no such host",
        "unable to resolve hostname",
        "host not found in upstream",
        "gethostbyname failed",
        "Host name lookup failure",
    ),
    Rule(
        "SshPermissionDenied",
        STARTUP - 1,
        "Permission denied (",
        rf"(?:[^\s@]{{1,64}}@{HOST}: )?Permission denied "
        r"\((?:publickey|password|keyboard|gssapi|hostbased)",
        ("mpiuser@n1: Permission denied (publickey).",),
    ),
    *said(
        "SshPermissionDenied",
        STARTUP - 1,
        "Too many authentication failures",
        "Permission denied, please try again.",
        "Authentication refused: bad ownership or modes",
    ),
    *said("SshKeyFileMode", STARTUP, "UNPROTECTED PRIVATE KEY FILE", "Bad owner or permissions on"),
    Rule(
        "SshKeyFileMode",
        STARTUP,
        "bad permissions",
        r'^Load key "[^"]{1,400}": bad permissions',
        ('Load key "/etc/mpi/id_ecdsa": bad permissions',),
    ),
    Rule(
        "SshKeyInvalid",
        STARTUP - 2,
        "not accessible",
        r"^(?:Warning: )?Identity file \S{1,400} not accessible: ",
        ("Warning: Identity file /root/.ssh/id_rsa not accessible: No such file or directory.",),
    ),
    Rule(
        "SshKeyInvalid",
        STARTUP - 2,
        "no such identity:",
        r"^no such identity: \S{1,400}: ",
        ("no such identity: /root/.ssh/id_rsa: No such file or directory",),
    ),
    Rule(
        "SshKeyInvalid",
        STARTUP,
        "Load key",
        r'^Load key "[^"]{1,400}": (?:invalid format|error in libcrypto|incorrect passphrase)',
        ('Load key "/etc/mpi/id_rsa": error in libcrypto',),
    ),
    *said(
        "SshHostKeyChanged",
        STARTUP + 1,
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "POSSIBLE DNS SPOOFING DETECTED",
    ),
    Rule(
        "SshHostKeyChanged",
        STARTUP + 1,
        "has changed and you have requested strict checking",
        rf"^(?:Host key|[A-Z0-9]{{1,12}} host key) for \[?{HOST}",
        ("Host key for [n1]:2222 has changed and you have requested strict checking.",),
    ),
    Rule(
        "SshHostKeyUnknown",
        STARTUP,
        "and you have requested strict checking",
        rf"No \S{{1,20}} host key is known for \[?{HOST}",
        ("No ECDSA host key is known for n1 and you have requested strict checking.",),
    ),
    Rule(
        "SshHostKeyUnknown",
        STARTUP,
        "authenticity of host",
        rf"The authenticity of host '\[?{HOST}.{{0,80}} can't be established",
        ("The authenticity of host 'n1 (10.0.0.1)' can't be established.",),
    ),
    *said("SshHostKeyUnknown", STARTUP - 1, "Host key verification failed"),
    Rule(
        "SshConnectionClosed",
        STARTUP - 2,
        "exchange_identification:",
        r"(?:kex|ssh)_exchange_identification: .{0,60}(?:closed|reset|Broken pipe|banner)",
        (
            "kex_exchange_identification: Connection closed by remote host",
            "kex_exchange_identification: read: Connection reset by peer",
        ),
    ),
    Rule(
        "SshConnectionClosed",
        STARTUP - 2,
        " port ",
        rf"^Connection (?:reset|closed) by (?:remote host |authenticating user \S{{1,64}} )?"
        rf"{HOST} port \d{{1,5}}",
        ("Connection reset by 10.0.0.7 port 22",),
    ),
    *said(
        "SshConnectionClosed",
        STARTUP - 2,
        "banner exchange: Connection to",
        "Connection timed out during banner exchange",
        "ssh_dispatch_run_fatal: Connection to",
        "Corrupted MAC on input",
        "message authentication code incorrect",
    ),
    *said("SshConnectionClosed", STARTUP - 3, "Bad packet length"),
    Rule(
        "WorkerUnreachable",
        STARTUP - 3,
        "timed out",
        rf"^Connection to {HOST} port \d{{1,5}} timed out",
        ("Connection to 10.0.0.7 port 22 timed out",),
    ),
    *said(
        "SshAccountRefused",
        STARTUP - 1,
        "This account is currently not available",
        "Your account has expired",
        "Your password has expired",
        "Password change required but no TTY available",
        "This service allows sftp connections only",
        "because account is locked",
        "not allowed because none of user's groups are listed",
        "not allowed because not listed in AllowUsers",
        "Unprivileged users are not permitted to log in yet",
        "System is going down. Unprivileged users are not permitted",
        "You are required to change your password immediately",
        "Account locked due to",
    ),
    Rule(
        "SshFailed",
        STARTUP - 2,
        "Unable to negotiate with",
        rf"Unable to negotiate with {HOST} port \d{{1,5}}: no matching",
        ("Unable to negotiate with 10.0.0.7 port 22: no matching host key type found.",),
    ),
    *said(
        "SshFailed",
        STARTUP - 2,
        "SSH was not successfully established",
        "Bad configuration option:",
        "terminating, 1 bad configuration",
    ),
    Rule(
        "SshClientMissing",
        STARTUP,
        "execvp error on file",
        r"^\[mpiexec@[^\]]{1,253}\] .{1,300}execvp error on file ",
        (
            "[mpiexec@l] HYDU_create_process (launch.c:73): execvp error on file /usr/bin/ssh (No "
            "such file or directory)",
        ),
    ),
    *said(
        "SshClientMissing",
        STARTUP,
        'value of the MCA parameter "plm_rsh_agent"',
        'value of the MCA parameter "plm_ssh_agent"',
        "plm_rsh_agent was set to a path that could not be found",
        "unable to find an appropriate executable for launch agent",
        "ssh: command not found",
        "ssh: not found",
        "rsh: not found",
        "unable to find ssh or rsh",
    ),
    Rule(
        "SshClientMissing",
        STARTUP,
        "launcher",
        r"(?:unknown|cannot find|unable to find) (?:the )?(?:launcher|bootstrap) .{0,60}ssh",
        ("[mpiexec@l] unable to find launcher /opt/none/ssh",),
    ),
    *said(
        "SshServerFailed",
        STARTUP - 1,
        "sshd: no hostkeys available",
        "no hostkeys available -- exiting",
        "Missing privilege separation directory",
        "Privilege separation user sshd does not exist",
        "sshd re-exec requires execution with an absolute path",
    ),
    # Of several kinds of keys one may be enough.
    *said("SshServerFailed", HINT, "Could not load host key: ", "Unable to load host key: "),
    Rule(
        "SshServerFailed",
        STARTUP - 1,
        "Bind to port",
        r"Bind to port \d{1,5} on \S{1,64} failed: ",
        ("Bind to port 22 on 0.0.0.0 failed: Permission denied.",),
    ),
    Rule(
        "UserUnknown",
        STARTUP - 1,
        "No user exists for uid",
        examples=("No user exists for uid 1000620000",),
    ),
    *said("UserUnknown", STARTUP - 1, "You don't exist, go away", "unknown userid"),
    *said("UserUnknown", SPECIFIC, "getpwuid(): uid not found"),
    Rule(
        "WorkerLost",
        LOST,
        "closed by remote host",
        rf"^Connection to {HOST} closed by remote host",
        ("Connection to n1 closed by remote host.",),
    ),
    Rule(
        "WorkerLost",
        LOST - 1,
        "Broken pipe",
        rf"^(?:client_loop: send disconnect|packet_write_wait: Connection to {HOST} port \d{{1,5}})"
        r": Broken pipe",
        ("client_loop: send disconnect: Broken pipe",),
    ),
    Rule(
        "MpiMissingOnWorker",
        STARTUP,
        "not found",
        rf"(?:^|[\s/:]){_DAEMON}: (?:command )?not found",
        ("bash: line 1: orted: command not found", "sh: 1: prted: not found"),
    ),
    Rule(
        "MpiMissingOnWorker",
        STARTUP,
        "No such file or directory",
        rf"(?:^|[\s/:'\"]){_DAEMON}['\"]?: No such file or directory",
        ("bash: line 1: /opt/mpi/bin/orted: No such file or directory",),
    ),
    Rule(
        "MpiMissingOnWorker",
        STARTUP,
        "Permission denied",
        rf"(?:^|[\s/:]){_DAEMON}: Permission denied",
        ("bash: line 1: /opt/mpi/bin/orted: Permission denied",),
    ),
    Rule(
        "MpiMissingOnWorker",
        STARTUP - 1,
        "error while loading shared libraries",
        rf"(?:^|[\s/:]){_DAEMON}: error while loading shared libraries",
        ("/opt/mpi/bin/orted: error while loading shared libraries: libopen-rte.so.40: cannot",),
    ),
)

DETAILS: Final = (
    Detail(
        "SshHostKeyChanged",
        "ost key for",
        rf"ost key for \[?{HOST}\]?(?::\d{{1,5}})? has changed",
        "Host key for [n1]:2222 has changed and you have requested strict checking.",
    ),
    Detail(
        "SshKeyFileMode",
        "Permission denied (",
        rf"[^\s@]{{1,64}}@{HOST}: Permission denied \(",
        "mpiuser@n1: Permission denied (publickey).",
    ),
    Detail(
        "SshKeyInvalid",
        "Permission denied (",
        rf"[^\s@]{{1,64}}@{HOST}: Permission denied \(",
        "mpiuser@n1: Permission denied (publickey).",
    ),
)

BOILERPLATE: Final[tuple[str, ...]] = ()
NOISE: Final[tuple[str, ...]] = ("Warning: Permanently added",)
