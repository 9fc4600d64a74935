package corpus

// A Draft is what a judge makes of the evidence for a claim (GPE, III-B): a verdict that is proposed to the
// people who rule, with its reasons and its doubts. It is never gold, and never takes the place of a
// claim's own verdict.
type Draft struct {
	ClaimID  string        `json:"claim_id"`
	Judge    string        `json:"judge"`
	Verdict6 Verdict       `json:"verdict6"`
	Status   VerdictStatus `json:"verdict_status"` // StatusDraft, always
	By       string        `json:"by"`             // DraftByModel, or DraftByRule where there was nothing to weigh

	Rationale   string      `json:"rationale"`
	Uncertainty string      `json:"uncertainty"` // what is open, and what would change the verdict
	Parts       []DraftPart `json:"subclaims"`
	Exhibits    []Exhibit   `json:"evidence"` // documents that were weighed, in the order in which they were found

	Weighed Verdict  `json:"weighed"` // what fixed weights of the same evidence give; for comparison
	Flags   []string `json:"flags,omitzero"`
	Call    string   `json:"call,omitzero"`  // of the reply
	Calls   []string `json:"calls,omitzero"` // every call paid for it
}

// Who drafted a verdict.
const (
	DraftByModel = "model"
	DraftByRule  = "rule"
)

// A DraftPart is the drafted label of one subclaim.
type DraftPart struct {
	ID       string  `json:"id"`
	Text     string  `json:"text"`
	Verdict6 Verdict `json:"verdict6"`        // "" where the model gave none
	Weighed  Verdict `json:"weighed"`         // by fixed weights
	Open     string  `json:"open,omitzero"`   // why it is unresolved: one of the Open constants
	Origins  int     `json:"origins"`         // independent origins that take a side
	Silent   int     `json:"silent,omitzero"` // documents that were read for it and take none
}

// Why a subclaim is unresolved.
const (
	OpenNoEvidence  = "no_evidence" // nothing that was read takes a side
	OpenWeak        = "weak"        // what takes a side bears little on it, or deserves little trust
	OpenOutOfTime   = "out_of_time" // what takes a side speaks of another time
	OpenConflicting = "conflicting" // both sides have weight
)

// An Exhibit is a document as a judge was shown it; rationales speak of it by its ID.
type Exhibit struct {
	ID         string `json:"id"` // E1, E2, ...
	DocumentID string `json:"document_id"`
	URL        string `json:"url,omitzero"`
	Cited      bool   `json:"cited,omitzero"` // the model names it among its grounds
}

// Flags of a Draft.
const (
	FlagSubclaimExtra      = "subclaim_extra"       // a label for a subclaim that there is not; dropped
	FlagSubclaimMissing    = "subclaim_missing"     // a subclaim without a label
	FlagSubclaimRepeated   = "subclaim_repeated"    // one with two different labels; neither counts
	FlagCitationUnknown    = "citation_unknown"     // a document that was not shown; dropped
	FlagUncited            = "uncited"              // a verdict that names none of the documents
	FlagDiffersFromWeights = "differs_from_weights" // far from what fixed weights give
	FlagPartsDisagree      = "parts_disagree"       // far from what its own labels of the subclaims add up to
)

// FlagUnread begins a flag of evidence whose document was not analysed; the outcome of the reply follows, or too_long
// where the model refused the document as longer than it reads.
const FlagUnread = "analysis_"
