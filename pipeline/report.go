package pipeline

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Counts of items, each item once. Ran and Fresh split what has an outcome by how the run got it;
// Failed, Excluded and Waiting are about the outcome, so that they overlap with them.
type Counts struct {
	Ran          int `json:"ran"`           // Do ran to an outcome of any kind
	Equal        int `json:"equal"`         // of Ran: to the output that was recorded before
	Fresh        int `json:"fresh"`         // the recorded output or exclusion was used
	Failed       int `json:"failed"`        // in this run
	FailedBefore int `json:"failed_before"` // recorded earlier, and not tried in this run
	Excluded     int `json:"excluded"`      // in this run or earlier
	Blocked      int `json:"blocked"`
	Waiting      int `json:"waiting"`
}

func (c *Counts) add(o Counts) {
	c.Ran += o.Ran
	c.Equal += o.Equal
	c.Fresh += o.Fresh
	c.Failed += o.Failed
	c.FailedBefore += o.FailedBefore
	c.Excluded += o.Excluded
	c.Blocked += o.Blocked
	c.Waiting += o.Waiting
}

// A StageReport says what became of a stage's items.
type StageReport struct {
	Name string `json:"name"`
	Counts
	Reasons    map[Reason]int `json:"reasons"`              // why items ran or did not
	Exclusions map[string]int `json:"exclusions,omitempty"` // by reason
	Failures   map[string]int `json:"failures,omitempty"`   // of Failed, by class
	Examples   []FailedItem   `json:"examples,omitempty"`   // of Failed: the first by key, at most three
}

// A FailedItem is one failure of this run.
type FailedItem struct {
	Key    string `json:"key"`
	Class  string `json:"class"`
	Reason string `json:"reason"`
}

// A Report says what a run did, or in Explain mode what a run would have to do.
type Report struct {
	Counts               // over all stages
	Stages []StageReport `json:"stages"`
	Wall   time.Duration `json:"wall_ns"` // since the engine was made
}

// An Explanation says why one item runs or does not.
type Explanation struct {
	Stage  string `json:"stage"`
	Key    string `json:"key"`
	Reason Reason `json:"reason"`
	Detail string `json:"detail,omitzero"` // for a person
}

type stageState struct {
	StageReport
	done, expected int
}

// A mark is what the walk did with an item, so that an item asked for twice counts once.
type mark uint8

const (
	unmarked mark = iota
	blocked       // a later visit that is not blocked replaces it
	counted
)

// A visit is one look at an item, or one run of it.
type visit struct {
	job
	item   Item
	reason Reason
	detail string
	ran    bool
	equal  bool // its output is the one recorded before
}

// note counts a visit, explains it if somebody asked, and tells the progress.
func (e *Engine) note(v visit) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := e.hash(v.id)
	before := e.marks[id]
	if before == counted && !v.ran || before == blocked && v.reason == Blocked {
		return
	}
	st := e.stage(v.stage)
	if before == blocked {
		st.uncountBlocked()
	}
	e.marks[id] = counted
	if v.reason == Blocked {
		e.marks[id] = blocked
	}
	if v.ran && (v.item.Fail != nil || v.item.Excl != nil) {
		e.failed[id] = v.item.FP
	}
	st.count(v)
	e.explain(v)
	e.tell(st)
}

func (e *Engine) stage(name string) *stageState {
	st := e.stages[name]
	if st == nil {
		st = &stageState{StageReport: StageReport{Name: name, Reasons: map[Reason]int{},
			Exclusions: map[string]int{}, Failures: map[string]int{}}}
		e.stages[name] = st
	}
	return st
}

func (st *stageState) uncountBlocked() {
	st.done--
	st.Blocked--
	if st.Reasons[Blocked]--; st.Reasons[Blocked] == 0 {
		delete(st.Reasons, Blocked)
	}
}

func (st *stageState) count(v visit) {
	st.done++
	st.Reasons[v.reason]++
	switch v.reason {
	case Blocked:
		st.Blocked++
		return
	case Fresh:
		st.Fresh++
	}
	if v.ran {
		st.Ran++
	}
	if v.equal {
		st.Equal++
	}
	if !v.ran && v.reason != Fresh && v.reason != FailedBefore && v.reason != Waiting {
		return // stale and only looked at: it has no outcome that counts
	}
	switch fail, excl := v.item.Fail, v.item.Excl; {
	case fail != nil && fail.Class == ClassWaiting:
		st.Waiting++
	case fail != nil && v.ran:
		st.Failed++
		st.Failures[fail.Class]++
		st.example(FailedItem{v.key, fail.Class, fail.Reason})
	case fail != nil:
		st.FailedBefore++
	case excl != nil:
		st.Excluded++
		st.Exclusions[excl.Reason]++
	}
}

// example keeps the first failures by key, so that a report does not depend on who was faster.
func (st *stageState) example(f FailedItem) {
	i, _ := slices.BinarySearchFunc(st.Examples, f.Key, func(x FailedItem, key string) int { return cmp.Compare(x.Key, key) })
	st.Examples = slices.Insert(st.Examples, i, f)
	st.Examples = st.Examples[:min(len(st.Examples), 3)]
}

func (e *Engine) explain(v visit) {
	if e.opt.Why != nil && e.opt.Why(v.stage, v.key) {
		e.why[v.id] = Explanation{v.stage, v.key, v.reason, v.detail}
	}
}

func (e *Engine) tell(st *stageState) {
	if e.opt.Progress != nil {
		e.opt.Progress.Update(Tally{Stage: st.Name, Done: st.done, Ran: st.Ran, Failed: st.Failed, Total: st.expected})
	}
}

// Expect tells the progress that n more items of the stage will be asked for. Without it a stage
// has no total, and so no time left.
func (e *Engine) Expect(stage string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	st := e.stage(stage)
	st.expected += n
	e.tell(st)
}

// Block counts an item that cannot be asked for, because the output that its input would come from
// does not exist; its record, if there is one, counts as touched. It returns an error when the
// store cannot be read.
func (e *Engine) Block(stage, key string) error {
	j := job{stage: stage, key: key, id: itemKey(stage, key)}
	f, err := e.read(j)
	if err != nil {
		return err
	}
	e.note(visit{job: j, item: f.item, reason: Blocked, detail: "what it works on is not there yet"})
	return nil
}

// Why returns the explanations of the items that Options.Why chose, by stage and key.
func (e *Engine) Why() []Explanation {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.SortedFunc(maps.Values(e.why), func(a, b Explanation) int {
		return cmp.Or(e.compareStages(a.Stage, b.Stage), cmp.Compare(a.Key, b.Key))
	})
}

func (e *Engine) compareStages(a, b string) int {
	rank := func(name string) int {
		if i := slices.Index(e.opt.Order, name); i >= 0 {
			return i
		}
		return len(e.opt.Order)
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}

// Report returns what the engine did so far. It may be called while the run goes on.
func (e *Engine) Report() Report {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := Report{Wall: e.opt.Now().Sub(e.started)}
	for _, st := range e.stages {
		if st.done == 0 {
			continue
		}
		s := st.StageReport
		s.Reasons, s.Exclusions, s.Failures = maps.Clone(s.Reasons), maps.Clone(s.Exclusions), maps.Clone(s.Failures)
		s.Examples = slices.Clone(s.Examples)
		r.Stages = append(r.Stages, s)
		r.add(s.Counts)
	}
	slices.SortFunc(r.Stages, func(a, b StageReport) int { return e.compareStages(a.Name, b.Name) })
	return r
}

// Text is the report of a run for people: a table, then what was left out and what failed.
func (r Report) Text() string {
	t := newTable("stage", "ran", "equal", "fresh", "failed", "failed before", "excluded", "waiting", "blocked")
	for _, s := range r.Stages {
		t.row(s.Name, s.Ran, s.Equal, s.Fresh, s.Failed, s.FailedBefore, s.Excluded, s.Waiting, s.Blocked)
	}
	if len(r.Stages) != 1 {
		t.row("total", r.Ran, r.Equal, r.Fresh, r.Failed, r.FailedBefore, r.Excluded, r.Waiting, r.Blocked)
	}
	var b strings.Builder
	b.WriteString(t.String())
	for _, s := range r.Stages {
		line(&b, s.Name, "ran because", ranBecause(s))
		line(&b, s.Name, "excluded", tally(s.Exclusions))
		line(&b, s.Name, "failed", tally(s.Failures))
		for _, f := range s.Examples {
			fmt.Fprintf(&b, "  %s: %s: %s\n", f.Key, f.Class, f.why())
		}
		if more := s.Failed - len(s.Examples); more > 0 {
			fmt.Fprintf(&b, "  and %d more (assay ls %s --state failed)\n", more, s.Name)
		}
	}
	fmt.Fprintf(&b, "took %s\n", r.Wall.Round(time.Millisecond))
	return b.String()
}

// why is the reason on one line, without the item's name at its beginning, where errors wrote it.
func (f FailedItem) why() string { return unnamed(f.Reason, f.Key) }

// Why is the failure or exclusion on one line, without stage and name of its item.
func (e *ItemError) Why() string {
	switch {
	case e.Fail != nil:
		return e.Fail.Class + ": " + unnamed(e.Fail.Reason, e.Key)
	case e.Excl != nil:
		return strings.TrimSuffix(e.Excl.Reason+": "+unnamed(e.Excl.Detail, e.Key), ": ")
	}
	return "no outcome"
}

// unnamed takes what errors put around an item's name off the beginning of a text: a verb, and for net/http quotes.
func unnamed(text, key string) string {
	text = strings.Join(strings.Fields(text), " ")
	for again := true; again; {
		again = false
		for _, name := range []string{key, strconv.Quote(key)} {
			if doing, rest, named := strings.Cut(text, " "+name+": "); named && !strings.Contains(doing, " ") {
				text, again = rest, true
			}
		}
	}
	return text
}

// Status is the report of an Explain walk for people: for every stage the items by reason.
func (r Report) Status() string {
	head := []string{"stage", "items"}
	var shown []Reason
	for _, reason := range reasons {
		if slices.ContainsFunc(r.Stages, func(s StageReport) bool { return s.Reasons[reason] > 0 }) {
			shown = append(shown, reason)
			head = append(head, string(reason))
		}
	}
	t := newTable(head...)
	for _, s := range r.Stages {
		all := 0
		for _, n := range s.Reasons {
			all += n
		}
		counts := []int{all}
		for _, reason := range shown {
			counts = append(counts, s.Reasons[reason])
		}
		t.row(s.Name, counts...)
	}
	return t.String()
}

// Folded sums up stages of one kind of which all items have one reason, where there are more than three: dozens of
// sites that were never asked, or that are all fresh, are told in a line.
func (r Report) Folded() Report {
	alike := func(s StageReport) string {
		kind, _, _ := strings.Cut(s.Name, "/")
		for reason := range s.Reasons {
			if len(s.Reasons) == 1 && (reason == Missing || reason == Fresh) {
				return kind + " " + string(reason)
			}
		}
		return ""
	}
	sums := map[string]StageReport{}
	number := map[string]int{}
	for _, s := range r.Stages {
		of := alike(s)
		number[of]++
		sum := sums[of]
		if sum.Reasons == nil {
			sum.Reasons = map[Reason]int{}
		}
		for reason, n := range s.Reasons {
			sum.Reasons[reason] += n
		}
		sums[of] = sum
	}
	stages := r.Stages
	r.Stages = nil
	for _, s := range stages {
		of := alike(s)
		if of == "" || number[of] <= 3 {
			r.Stages = append(r.Stages, s)
		} else if sum, first := sums[of]; first {
			kind, _, _ := strings.Cut(s.Name, "/")
			sum.Name = fmt.Sprintf("%s/* (%d)", kind, number[of])
			r.Stages = append(r.Stages, sum)
			delete(sums, of)
		}
	}
	return r
}

// ranBecause leaves out the items that did not run.
func ranBecause(s StageReport) string {
	if s.Ran == 0 {
		return ""
	}
	ran := map[string]int{}
	for reason, n := range s.Reasons {
		switch reason {
		case Fresh, Blocked:
			continue
		case FailedBefore:
			n -= s.FailedBefore
		}
		if n > 0 {
			ran[string(reason)] = n
		}
	}
	return tally(ran)
}

func line(b *strings.Builder, stage, what, counts string) {
	if counts != "" {
		fmt.Fprintf(b, "%s %s: %s\n", stage, what, counts)
	}
}

// tally lists counts, the largest first.
func tally(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for i, name := range names {
		names[i] = fmt.Sprintf("%s %d", name, counts[name])
	}
	return strings.Join(names, ", ")
}

// A table has a name in its first column, and numbers right-aligned in the others.
type table [][]string

func newTable(head ...string) table { return table{head} }

func (t *table) row(name string, counts ...int) {
	row := []string{name}
	for _, n := range counts {
		row = append(row, strconv.Itoa(n))
	}
	*t = append(*t, row)
}

func (t table) String() string {
	width := make([]int, len(t[0]))
	for _, row := range t {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	var b strings.Builder
	for _, row := range t {
		fmt.Fprintf(&b, "%-*s", width[0], row[0])
		for i, cell := range row[1:] {
			fmt.Fprintf(&b, "  %*s", width[i+1], cell)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
