// Submits a job over gRPC, waits for its end and prints what its ranks wrote.
//
//	TOKEN=... go run . -server 127.0.0.1:9090 mpijob.yaml
//
// With -ca it speaks TLS to a server whose certificate that file has signed; without, it sends the
// token to this machine alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	v1 "mpi-trainer/examples/clients/go/mpitrainerv1"
)

func main() {
	server := flag.String("server", "127.0.0.1:9090", "HOST:PORT of the server")
	namespace := flag.String("namespace", "default", "where the job runs")
	authority := flag.String("ca", "", "file with whom the server's certificate is signed by")
	flag.Parse()
	if err := run(*server, *authority, *namespace, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "error:", explained(err))
		os.Exit(1)
	}
}

func run(server, authority, namespace, file string) error {
	manifest, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	login, err := transport(server, authority)
	if err != nil {
		return err
	}
	connection, err := grpc.NewClient(server, grpc.WithTransportCredentials(login))
	if err != nil {
		return err
	}
	defer connection.Close()
	jobs := v1.NewMPIJobsClient(connection)
	ctx := metadata.AppendToOutgoingContext(
		context.Background(), "authorization", "Bearer "+os.Getenv("TOKEN"))

	job, err := jobs.CreateMPIJob(ctx, &v1.CreateMPIJobRequest{
		Namespace: namespace,
		Manifest:  &v1.CreateMPIJobRequest_ManifestYaml{ManifestYaml: string(manifest)},
	})
	if err != nil {
		return err
	}
	ended, err := watch(ctx, jobs, job)
	if err != nil {
		return err
	}
	if err := logs(ctx, jobs, job); err != nil {
		return err
	}
	if ended != v1.JobState_JOB_STATE_SUCCEEDED {
		return fmt.Errorf("job %s/%s has not succeeded", job.Namespace, job.Name)
	}
	return nil
}

// The last state of the job; its changes are printed as they come.
func watch(ctx context.Context, jobs v1.MPIJobsClient, job *v1.MPIJob) (v1.JobState, error) {
	changes, err := jobs.WatchMPIJobStatus(
		ctx, &v1.WatchMPIJobStatusRequest{Namespace: job.Namespace, Name: job.Name})
	if err != nil {
		return 0, err
	}
	var last v1.JobState
	for {
		change, err := changes.Recv()
		if errors.Is(err, io.EOF) {
			return last, nil
		}
		if err != nil {
			return 0, err
		}
		if now := change.GetStatus().GetState(); now != last {
			fmt.Println(now)
			last = now
		}
	}
}

func logs(ctx context.Context, jobs v1.MPIJobsClient, job *v1.MPIJob) error {
	answers, err := jobs.GetMPIJobLogs(
		ctx, &v1.GetMPIJobLogsRequest{Namespace: job.Namespace, Name: job.Name})
	if err != nil {
		return err
	}
	for {
		answer, err := answers.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, line := range answer.Lines {
			if line.Rank != nil {
				fmt.Println(*line.Rank, line.Text)
			}
		}
	}
}

func transport(server, authority string) (credentials.TransportCredentials, error) {
	if authority != "" {
		return credentials.NewClientTLSFromFile(authority, "")
	}
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		return nil, err
	}
	if address := net.ParseIP(host); address == nil || !address.IsLoopback() {
		return nil, fmt.Errorf("%s is no address of this machine: without -ca the token would be sent in the clear", host)
	}
	return insecure.NewCredentials(), nil
}

// What went wrong and what to do, with every wrong field, where the server says it.
func explained(err error) string {
	said := status.Convert(err)
	for _, detail := range said.Details() {
		if problem, ok := detail.(*v1.Problem); ok {
			text := problem.Detail + "\nhint: " + problem.Hint
			for _, wrong := range problem.Errors {
				text += fmt.Sprintf("\n  %s: %s. %s", wrong.Field, wrong.Message, wrong.Remedy)
			}
			return text
		}
	}
	return err.Error()
}
