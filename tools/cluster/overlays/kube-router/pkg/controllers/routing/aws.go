// Takes the place of kube-router's own aws.go: no node here is a machine of Amazon's, and the client
// for its API is the largest package of all that a cold machine would compile, 250 seconds of it.

package routing

func (nrc *NetworkRoutingController) disableSourceDestinationCheck() {}
