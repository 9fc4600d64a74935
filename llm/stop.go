package llm

import (
	"context"
	"errors"
)

// ErrStopped is the error of a call that was given up because of StopWith, before it was sent or sent again.
var ErrStopped = errors.New("the run was stopped while an endpoint was waited for")

type stopKey struct{}

// StopWith returns a context whose calls wait for no limit and no other attempt once stop is done: they end with
// ErrStopped. A call on its way is waited for, since it is paid for; the context itself ends that.
func StopWith(ctx, stop context.Context) context.Context {
	return context.WithValue(ctx, stopKey{}, stop)
}

// waiting waits by f.
func waiting(ctx context.Context, f func(context.Context) error) error {
	stop, ok := ctx.Value(stopKey{}).(context.Context)
	if !ok {
		return f(ctx)
	}
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(stop, cancel)() //nolint:contextcheck // the other context only ends the wait
	err := f(within)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return ErrStopped
	}
	return err
}
