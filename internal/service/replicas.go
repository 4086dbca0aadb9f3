package service

import "context"

// Changed applies what another replica has forgotten, or an operator has changed about people.
func (sv *Service) Changed(ctx context.Context) error {
	sv.o.Pipeline.Doubt()
	err := sv.o.State.Generations.Refresh(ctx)
	sv.o.People.Check()
	sv.goOn()
	return err
}
