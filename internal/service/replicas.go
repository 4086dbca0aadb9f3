package service

import "context"

// Changed applies a forget of another replica, or a changed proof of a person.
func (sv *Service) Changed(ctx context.Context) error {
	sv.o.Pipeline.Doubt()
	err := sv.o.State.Generations.Refresh(ctx)
	sv.o.People.Check()
	sv.goOn()
	return err
}
