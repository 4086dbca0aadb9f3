package graphiti_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Raw ids name their scope and its owner. By default, ids are hashes.
func ExampleNamer_Group() {
	who := graphiti.Who{User: "user:josh", Workspace: "github.com/acme/widgets"}
	names := graphiti.Namer{Raw: true}
	for _, scope := range []graphiti.Scope{graphiti.ScopeUser, graphiti.ScopeWorkspace} {
		id, ok := names.Group(scope, who)
		fmt.Println(id, ok)
	}
	// Output:
	// user_josh true
	// workspace_github_com_acme_widgets-f60ecdb16e5e8e82 true
}
