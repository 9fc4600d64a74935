package llm

import "fmt"

// OpenBatches lists the jobs that are planned or sent and whose answers are not taken in, as last seen.
func (c *Client) OpenBatches() (open []Job, err error) {
	for entry, err := range c.orders.jobs.Scan("", "") {
		if err != nil {
			return nil, fmt.Errorf("read batch jobs: %w", err)
		}
		if !entry.Value.Taken {
			open = append(open, entry.Value)
		}
	}
	return open, nil
}
