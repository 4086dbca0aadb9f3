package words_test

import (
	"fmt"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

func ExampleOf() {
	fmt.Println(words.Of("On which ports do the staging databases listen?", 5))
	// Output: [port stage databas listen]
}
