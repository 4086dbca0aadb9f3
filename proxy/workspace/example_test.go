package workspace_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/workspace"
)

func ExampleMatchAny() {
	ignored := []string{"/home/ann/private/*", "github_repo:github.com/acme/*"}
	fmt.Println(workspace.MatchAny(ignored, "/home/ann/private/diary"))
	fmt.Println(workspace.MatchAny(ignored, "/home/ann/widgets", "github_repo:github.com/acme/widgets"))
	fmt.Println(workspace.MatchAny(ignored, "/home/ann/widgets"))
	// Output:
	// true
	// true
	// false
}
