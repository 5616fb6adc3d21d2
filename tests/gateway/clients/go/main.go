// SPDX-License-Identifier: Apache-2.0

// franz-go: reads, and maybe produces, as options.py says of all clients.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	aborted        = -1
	inATransaction = 3
)

var (
	bootstrap       = flag.String("bootstrap", "", "")
	topic           = flag.String("topic", "", "")
	group           = flag.String("group", "", "")
	refreshMs       = flag.Int("refresh-ms", 0, "")
	pauseMs         = flag.Int("pause-ms", 0, "")
	over            = flag.String("over", "", "")
	enough          = flag.String("enough", "", "")
	transactionalID = flag.String("transactional-id", "", "")
)

func main() {
	flag.Parse()
	if *enough != "" {
		go produce()
	}
	read()
}

func common() []kgo.Opt {
	refresh := time.Duration(*refreshMs) * time.Millisecond
	return []kgo.Opt{
		kgo.SeedBrokers(strings.Split(*bootstrap, ",")...),
		kgo.MetadataMaxAge(refresh),
		kgo.MetadataMinAge(min(refresh, 100*time.Millisecond)),
	}
}

func newClient(options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append(common(), options...)...)
	check(err)
	return client
}

func read() {
	isolation := kgo.ReadUncommitted()
	if *transactionalID != "" {
		isolation = kgo.ReadCommitted()
	}
	client := newClient(
		kgo.ConsumerGroup(*group),
		kgo.ConsumeTopics(*topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(isolation),
		// What was read is committed before another member gets it: no default of this client.
		kgo.BlockRebalanceOnPoll(),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(200*time.Millisecond),
		kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, _ map[string][]int32) {
			check(client.CommitMarkedOffsets(ctx))
		}),
	)
	for !isThere(*over) {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		fetches := client.PollRecords(ctx, 1000)
		cancel()
		fetches.EachRecord(func(record *kgo.Record) {
			say("read " + string(record.Value))
			client.MarkCommitRecords(record)
		})
		client.AllowRebalance()
	}
	check(client.CommitMarkedOffsets(context.Background()))
	client.CloseAllowingRebalance()
}

func produce() {
	// The default stays with one partition for long; each member is to get something.
	options := []kgo.Opt{kgo.RecordPartitioner(kgo.RoundRobinPartitioner())}
	if *transactionalID != "" {
		options = append(options, kgo.TransactionalID(*transactionalID))
	}
	client := newClient(options...)
	ctx := context.Background()
	count := 0
	next := func() {
		send(client, count)
		count++
		time.Sleep(time.Duration(*pauseMs) * time.Millisecond)
	}
	for !isThere(*enough) {
		if *transactionalID == "" {
			next()
			continue
		}
		check(client.BeginTransaction())
		for range inATransaction {
			send(client, aborted)
		}
		check(client.EndTransaction(ctx, kgo.TryAbort))
		check(client.BeginTransaction())
		for range inATransaction {
			next()
		}
		check(client.EndTransaction(ctx, kgo.TryCommit))
	}
	client.Close()
	say("produced " + strconv.Itoa(count))
}

func send(client *kgo.Client, number int) {
	record := &kgo.Record{Topic: *topic, Value: []byte(strconv.Itoa(number))}
	check(client.ProduceSync(context.Background(), record).FirstErr())
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func say(line string) {
	fmt.Println(line)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
