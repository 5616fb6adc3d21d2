// SPDX-License-Identifier: Apache-2.0

// A group member on sarama.
package main

import (
	"context"
	"log"
	"os"

	"github.com/IBM/sarama"

	member "groupkeeper.invalid/members"
)

var options = member.ParseOptions()

func main() {
	sarama.Logger = log.New(os.Stderr, "", 0)
	config := sarama.NewConfig()
	config.ClientID = options.ClientID
	config.Consumer.Group.InstanceId = options.InstanceID
	config.Consumer.Group.Session.Timeout = options.SessionTimeout
	config.Consumer.Group.Heartbeat.Interval = options.HeartbeatInterval
	config.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyRange()}
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Version = sarama.MaxVersion
	client, err := sarama.NewClient(options.Bootstrap, config)
	member.Check(err)
	group, err := sarama.NewConsumerGroupFromClient(options.Group, client)
	member.Check(err)
	ctx, leave := context.WithCancel(context.Background())
	handler := &handler{client: client, commands: member.Commands(), leave: leave}
	for ctx.Err() == nil {
		member.Check(group.Consume(ctx, []string{options.Topic}, handler))
	}
	member.Check(group.Close())
	member.Emit("left", nil)
}

// handler obeys commands in one generation after the other.
type handler struct {
	client   sarama.Client
	commands <-chan member.Command
	leave    context.CancelFunc
}

// Setup is called with each assignment.
func (h *handler) Setup(session sarama.ConsumerGroupSession) error {
	member.EmitPartitions("assigned", session.Claims()[options.Topic])
	go h.obeyAll(session)
	return nil
}

// Cleanup is called when it ends.
func (h *handler) Cleanup(session sarama.ConsumerGroupSession) error {
	member.EmitPartitions("revoked", session.Claims()[options.Topic])
	return nil
}

// ConsumeClaim is called with each partition.
func (h *handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for range claim.Messages() {
	}
	return nil
}

func (h *handler) obeyAll(session sarama.ConsumerGroupSession) {
	for {
		select {
		case <-session.Context().Done():
			return
		case command := <-h.commands:
			if command.Command == "leave" {
				h.leave()
				return
			}
			h.obey(session, command)
		}
	}
}

func (h *handler) obey(session sarama.ConsumerGroupSession, command member.Command) {
	if command.Command == "commit" {
		for partition, offset := range command.Offsets {
			session.MarkOffset(options.Topic, partition, offset, "")
		}
		session.Commit()
		member.EmitOffsets("committed", command.Offsets)
		return
	}
	admin, err := sarama.NewClusterAdminFromClient(h.client)
	member.Check(err)
	answer, err := admin.ListConsumerGroupOffsets(options.Group, map[string][]int32{options.Topic: command.Partitions})
	if err != nil {
		member.Refused(err)
		return
	}
	found := map[int32]int64{}
	for partition, block := range answer.Blocks[options.Topic] {
		if block.Offset >= 0 {
			found[partition] = block.Offset
		}
	}
	member.EmitOffsets("offsets", found)
}
