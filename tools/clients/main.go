// Command clients uses an API server as programs in Go do: with typed clients that speak protobuf.
//
//	clients compare      lists and watches every built-in resource in JSON and in protobuf
//	clients controller   installs a CRD and runs a controller-runtime manager for it until SIGTERM
package main

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: clients compare|controller"))
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		fail(err)
	}
	// What is seen here is the server, not the client's own patience.
	config.QPS, config.Burst = 1000, 1000
	switch os.Args[1] {
	case "compare":
		err = compare(config)
	case "controller":
		err = control(config)
	default:
		err = fmt.Errorf("no such command: %s", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}
