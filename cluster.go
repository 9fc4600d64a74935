package assay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"assay/corpus"
	"assay/corpus/similar"
	"assay/pipeline"
)

// Clusters are the claims that several pages or rows tell in nearly the same words. A cluster points to its
// claims and merges none: each keeps its text, its verdict and its evidence.
type Clusters struct {
	Clusters   []similar.Cluster `json:"clusters"`
	Uncompared int               `json:"uncompared,omitzero"` // see similar.Result
}

// clusterKey is the key of the one item of the stage, since it is work on the whole corpus.
const clusterKey = "corpus"

// A claimsDigest stands for the table of claims that clusters are made of: as long as it is the same, nothing
// is compared again. It covers ids and wordings alone, for a changed verdict clusters nothing anew.
type claimsDigest struct {
	Claims int    `json:"claims"`
	SHA256 string `json:"sha256"` // over the claims by id: id, line end, wording, line end, each after its length
}

// cluster clusters the claims that the walk has met; it comes after all others.
func (k *walk) cluster(ctx context.Context) error {
	if !k.reaches(KindCluster) || k.told.len() == 0 {
		return nil
	}
	digest := claimsDigest{}
	sum := sha256.New()
	for told, err := range k.told.sorted() {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		digest.Claims++
		fmt.Fprintf(sum, "%d %s\n%d %s\n", len(told.ID), told.ID, len(told.Text), told.Text)
	}
	digest.SHA256 = hex.EncodeToString(sum.Sum(nil))
	e := k.e
	if k.derive != nil {
		e = k.derive
	}
	stage := k.stages.cluster(k.told)
	k.e.Expect(stage.Name, 1)
	out, err := pipeline.Run(ctx, e, stage, clusterKey, digest)
	_, ok, err := k.settled(ctx, "clusters", err)
	if err != nil || !ok || k.visit.clusters == nil {
		return err
	}
	return k.visit.clusters(out)
}

// toldClaim is what clusters read of a claim.
type toldClaim struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

func (s stages) cluster(told *spool[toldClaim]) pipeline.Stage[claimsDigest, Clusters] {
	return pipeline.Stage[claimsDigest, Clusters]{
		Name: KindCluster + "/claims", Version: similar.Claims.Version,
		Do: func(ctx context.Context, _ claimsDigest) (Clusters, error) {
			f := similar.NewFinder(similar.Claims)
			for c, err := range told.sorted() {
				if err != nil {
					return Clusters{}, err
				}
				if err := ctx.Err(); err != nil {
					return Clusters{}, err
				}
				f.Add(c.ID, c.Text)
			}
			found, err := f.Clusters(func(id string) (string, error) {
				if err := ctx.Err(); err != nil {
					return "", err
				}
				c, err := told.get(id)
				return c.Text, err
			})
			return Clusters{Clusters: found.Clusters, Uncompared: found.Uncompared}, err
		},
	}
}

// A ClaimReview is one claim of a cluster with what its source decided.
type ClaimReview struct {
	ID         string `json:"id"`
	Text       string `json:"text"`
	Source     string `json:"source"`
	Speaker    string `json:"speaker"`
	StatedDate string `json:"stated_date"`
	ReviewURL  string `json:"review_url"`
	ReviewDate string `json:"review_date"`
	RatingRaw  string `json:"rating_raw"`
	Verdict6   string `json:"verdict6"`
	Binary     string `json:"verdict_binary"`

	rank string // of the page or row that speaks
}

// String is a review in a line for people.
func (r ClaimReview) String() string {
	who, at := r.Speaker, r.ReviewURL
	if who == "" {
		who = "nobody named"
	}
	if at == "" {
		at = "no address, from " + r.Source
	}
	when := r.ReviewDate
	if when == "" {
		when = r.StatedDate
	}
	return strings.Join(strings.Fields(fmt.Sprintf("%s (%s, %s) %s, %s: %s %s", r.Binary, r.Verdict6, r.RatingRaw, when, who, r.ID, at)), " ")
}

// conflictOf tells how the verdicts of a cluster differ: "binary" where the projected ones do, "six_way" where only
// the six-way ones do, "" if they agree. A claim without a six-way verdict
// differs from none.
func conflictOf(claims []ClaimReview) string {
	binary, six := map[string]bool{}, map[string]bool{}
	for _, c := range claims {
		if c.Binary != "" {
			binary[c.Binary] = true
		}
		if c.Verdict6 != "" {
			six[c.Verdict6] = true
		}
	}
	switch {
	case len(binary) > 1:
		return "binary"
	case len(six) > 1:
		return "six_way"
	}
	return ""
}

// reviewed reads the clusters of the last build and the live claims in them.
func (w *Workspace) reviewed(ctx context.Context) ([]similar.Cluster, map[string]ClaimReview, error) {
	e := w.newEngine(pipeline.Options{Explain: true})
	item, ok, err := e.Item(stages{w}.cluster(nil).Name, clusterKey)
	if err != nil {
		return nil, nil, err
	}
	if !ok || len(item.Out) == 0 {
		return nil, nil, errors.New("no clusters are stored yet; assay build --until cluster makes them")
	}
	var stored Clusters
	if err := json.Unmarshal(item.Out, &stored); err != nil {
		return nil, nil, fmt.Errorf("read the clusters of claims: %w", err)
	}
	wanted, claims := map[string]bool{}, map[string]ClaimReview{}
	for _, c := range stored.Clusters {
		for _, id := range c.Members {
			wanted[id] = true
		}
	}
	var mu sync.Mutex
	k := &walk{w: w, e: e, until: KindParse, below: true, explain: true, stages: stages{w}, visit: visitor{
		claim: func(ref corpus.Ref, c corpus.Claim, binary string) error {
			if !wanted[c.ID] {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			rank := claimRank(ref, c)
			if had, ok := claims[c.ID]; !ok || rank < had.rank {
				claims[c.ID] = ClaimReview{
					ID: c.ID, Text: c.Text, Source: c.Source, Speaker: c.Speaker, StatedDate: c.StatedDate, ReviewURL: c.ReviewURL,
					ReviewDate: c.ReviewDate, RatingRaw: c.RatingRaw, Verdict6: string(c.Verdict6), Binary: binary, rank: rank,
				}
			}
			return nil
		},
	}}
	return stored.Clusters, claims, k.run(ctx)
}

// listClusters lists the clusters of claims, or only those whose verdicts are in conflict.
func (w *Workspace) listClusters(ctx context.Context, q ListQuery) ([]Listed, error) {
	clusters, claims, err := w.reviewed(ctx)
	if err != nil {
		return nil, err
	}
	var out []Listed
	for _, c := range clusters {
		var list []ClaimReview
		for _, id := range c.Members {
			if r, ok := claims[id]; ok {
				list = append(list, r)
			}
		}
		kind := conflictOf(list)
		if len(list) < 2 || q.Stage == listConflicts && kind == "" || q.Reason != "" && q.Reason != kind ||
			q.Source != "" && !slices.ContainsFunc(list, func(r ClaimReview) bool { return strings.Contains(r.Source+" "+r.ReviewURL, q.Source) }) {
			continue
		}
		out = append(out, Listed{
			ItemInfo: pipeline.ItemInfo{Stage: q.Stage, Key: c.ID, State: "done", Reason: kind}, Summary: list[0].Text, Claims: list,
		})
	}
	return q.sampled(out), nil
}

// What ls lists beside stages and ratings.
const (
	listClusters  = "clusters"
	listConflicts = "conflicts"
)
