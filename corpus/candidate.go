package corpus

import "slices"

// A CandidateClaim is a statement that an extractor found in a document: check-worthy, and understood
// without the document. It is no claim and counts as nothing until a person accepts it with a verdict.
type CandidateClaim struct {
	ID         string   `json:"id"` // see CandidateID
	Text       string   `json:"text"`
	Quote      string   `json:"quote"`            // the document's own words: what Span covers
	Span       Span     `json:"span"`             // of the document's text
	Speaker    string   `json:"speaker,omitzero"` // who is said to have stated it; "" where the document itself does
	Date       string   `json:"date,omitzero"`    // 2006-01-02, of the statement, else of the document
	DocumentID string   `json:"document_id"`
	URL        string   `json:"url"`
	Title      string   `json:"title,omitzero"`
	Source     string   `json:"source"` // name of the site that the document is from
	Tags       []string `json:"tags,omitzero"`
	Extractor  string   `json:"extractor"`
	Signs      []string `json:"signs,omitzero"` // what makes it checkable: number, name, comparison, ...
	Call       string   `json:"call,omitzero"`
}

// CandidateID names one wording of one statement in one document: k_ and 16 hex digits.
func CandidateID(documentID, text, speaker string) string {
	return "k_" + digest16(documentID, Wording(text), Wording(speaker))
}

// Accepted makes a candidate a claim with the verdict that people gave, on a day.
func (c CandidateClaim) Accepted(v Verdict, status VerdictStatus, day string) Claim {
	return Claim{
		ID: ClaimID(c.Text, c.Speaker, "", c.Date), Text: c.Text, Speaker: c.Speaker, RatingRaw: string(v), Rating: string(v), Verdict6: v,
		Status: status, StatedDate: c.Date, Medium: SourceName(c.URL), ReviewDate: day, Title: c.Title, Tags: slices.Clone(c.Tags),
		Source: c.Source, StatedIn: c.DocumentID, StatedURL: c.URL, StatedSpan: c.Span,
	}
}

// TakenFrom reports whether an address is that of the document that a claim was taken from. What it tells is the claim
// itself, and no evidence for it.
func (c Claim) TakenFrom(address string) bool {
	return c.StatedURL != "" && address != "" && IdentityURL(address) == IdentityURL(c.StatedURL)
}

// ReviewedAt reports whether an address is that of the review that a claim's own verdict is from, which is no evidence
// for or against it.
func (c Claim) ReviewedAt(address string) bool {
	return c.ReviewURL != "" && address != "" && IdentityURL(address) == IdentityURL(c.ReviewURL)
}

// SourceName names who publishes at an address: its registrable domain, else its host.
func SourceName(address string) string {
	host := Host(address)
	if domain := RegistrableDomain(host); domain != "" {
		return domain
	}
	return host
}
