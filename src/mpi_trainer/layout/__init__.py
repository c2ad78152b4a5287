"""What a job is: roles, hosts, hostfile, files, environment, argv. No Kubernetes in it. Pure."""
