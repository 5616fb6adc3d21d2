// SPDX-License-Identifier: Apache-2.0

// Package member has what members in Go share: protocol.py says how they talk with their test.
package member

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options are what a member is started with.
type Options struct {
	Bootstrap         []string
	Group             string
	Topic             string
	ClientID          string
	InstanceID        string
	Assignor          string
	SessionTimeout    time.Duration
	HeartbeatInterval time.Duration
}

// Command is a line of standard input.
type Command struct {
	Command    string          `json:"command"`
	Offsets    map[int32]int64 `json:"offsets"`
	Partitions []int32         `json:"partitions"`
}

// ParseOptions reads the options from the command line.
func ParseOptions() Options {
	bootstrap := flag.String("bootstrap", "", "")
	group := flag.String("group", "", "")
	topic := flag.String("topic", "", "")
	client := flag.String("client-id", "", "")
	instance := flag.String("instance-id", "", "")
	assignor := flag.String("assignor", "", "")
	session := flag.Int("session-timeout-ms", 0, "")
	heartbeat := flag.Int("heartbeat-interval-ms", 0, "")
	flag.Parse()
	return Options{
		Bootstrap:         strings.Split(*bootstrap, ","),
		Group:             *group,
		Topic:             *topic,
		ClientID:          *client,
		InstanceID:        *instance,
		Assignor:          *assignor,
		SessionTimeout:    time.Duration(*session) * time.Millisecond,
		HeartbeatInterval: time.Duration(*heartbeat) * time.Millisecond,
	}
}

// Commands gives the commands that come; the last one is to leave.
func Commands() <-chan Command {
	commands := make(chan Command)
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			var command Command
			Check(json.Unmarshal(lines.Bytes(), &command))
			commands <- command
		}
		commands <- Command{Command: "leave"}
	}()
	return commands
}

var writing sync.Mutex

// Emit tells the test what happened.
func Emit(event string, fields map[string]any) {
	told := map[string]any{"event": event}
	for name, value := range fields {
		told[name] = value
	}
	line, err := json.Marshal(told)
	Check(err)
	writing.Lock()
	defer writing.Unlock()
	fmt.Println(string(line))
}

// EmitPartitions tells which partitions the client was given, or has lost.
func EmitPartitions(event string, partitions []int32) {
	sorted := append([]int32{}, partitions...)
	slices.Sort(sorted)
	Emit(event, map[string]any{"partitions": sorted})
}

// EmitOffsets answers a command.
func EmitOffsets(event string, offsets map[int32]int64) {
	if offsets == nil {
		offsets = map[int32]int64{}
	}
	Emit(event, map[string]any{"offsets": offsets})
}

// Refused tells that a command has failed.
func Refused(err error) {
	Emit("refused", map[string]any{"error": err.Error()})
}

// Check ends the member where something is wrong that its test does not ask for.
func Check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
