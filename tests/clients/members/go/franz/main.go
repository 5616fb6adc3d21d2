// SPDX-License-Identifier: Apache-2.0

// A group member on franz-go.
package main

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	member "groupkeeper.invalid/members"
)

var options = member.ParseOptions()

func main() {
	balancer := kgo.RangeBalancer()
	if options.Assignor != "range" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	settings := []kgo.Opt{
		kgo.SeedBrokers(options.Bootstrap...),
		kgo.ClientID(options.ClientID),
		kgo.ConsumerGroup(options.Group),
		kgo.ConsumeTopics(options.Topic),
		kgo.Balancers(balancer),
		kgo.SessionTimeout(options.SessionTimeout),
		kgo.HeartbeatInterval(options.HeartbeatInterval),
		kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.OnPartitionsAssigned(telling("assigned")),
		kgo.OnPartitionsRevoked(telling("revoked")),
		kgo.OnPartitionsLost(telling("lost")),
	}
	if options.InstanceID != "" {
		settings = append(settings, kgo.InstanceID(options.InstanceID))
	}
	client, err := kgo.NewClient(settings...)
	member.Check(err)
	commands := member.Commands()
	for {
		select {
		case command := <-commands:
			if command.Command == "leave" {
				client.Close()
				member.Emit("left", nil)
				return
			}
			obey(client, command)
		default:
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			client.PollFetches(ctx)
			cancel()
		}
	}
}

func telling(event string) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, _ *kgo.Client, topics map[string][]int32) {
		member.EmitPartitions(event, topics[options.Topic])
	}
}

func obey(client *kgo.Client, command member.Command) {
	ctx := context.Background()
	if command.Command == "commit" {
		offsets := map[string]map[int32]kgo.EpochOffset{options.Topic: {}}
		for partition, offset := range command.Offsets {
			offsets[options.Topic][partition] = kgo.EpochOffset{Epoch: -1, Offset: offset}
		}
		var failure error
		client.CommitOffsetsSync(ctx, offsets, func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error) {
			failure = err
			if err == nil {
				failure = refusal(response)
			}
		})
		if failure != nil {
			member.Refused(failure)
			return
		}
		member.EmitOffsets("committed", command.Offsets)
		return
	}
	fetched, err := kadm.NewClient(client).FetchOffsets(ctx, options.Group)
	if err != nil {
		member.Refused(err)
		return
	}
	found := map[int32]int64{}
	for _, partition := range command.Partitions {
		if offset, ok := fetched.Lookup(options.Topic, partition); ok && offset.At >= 0 {
			found[partition] = offset.At
		}
	}
	member.EmitOffsets("offsets", found)
}

func refusal(response *kmsg.OffsetCommitResponse) error {
	for _, topic := range response.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}
