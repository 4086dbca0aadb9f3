package dialect

// Chore is a rule by which a client's own requests are recognised.
type Chore struct {
	Client, User, Then string
	Kind               Kind
	Agent              bool
}

// Chores are the rules.
func Chores() (all []Chore) {
	for _, ch := range chores {
		all = append(all, Chore{ch.client, ch.User, ch.Then, ch.Kind, ch.Agent})
	}
	return all
}

// Only runs f while there is only one rule.
func Only(rule int, f func()) {
	rest := chores
	defer func() { chores = rest }()
	chores = []chore{rest[rule]}
	f()
}
