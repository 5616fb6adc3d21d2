// SPDX-License-Identifier: Apache-2.0

// A group member on @platformatic/kafka; protocol.py says how it talks with its test.
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { Consumer } from '@platformatic/kafka'

const names = [
  'bootstrap', 'group', 'topic', 'client-id', 'instance-id', 'assignor', 'session-timeout-ms', 'heartbeat-interval-ms'
]
const { values: options } = parseArgs({ options: Object.fromEntries(names.map(name => [name, { type: 'string' }])) })
const topic = options.topic
let held = []

function emit (event, fields = {}) {
  process.stdout.write(`${JSON.stringify({ event, ...fields })}\n`)
}

function revoke () {
  if (held.length > 0) {
    emit('revoked', { partitions: held })
    held = []
  }
}

const consumer = new Consumer({
  bootstrapBrokers: options.bootstrap.split(','),
  groupId: options.group,
  clientId: options['client-id'],
  groupInstanceId: options['instance-id'],
  sessionTimeout: Number(options['session-timeout-ms']),
  heartbeatInterval: Number(options['heartbeat-interval-ms']),
  autocommit: false
})

consumer.on('consumer:group:rebalance', revoke)
consumer.on('consumer:group:join', ({ assignments }) => {
  revoke()
  held = (assignments ?? []).flatMap(each => each.topic === topic ? each.partitions : []).sort((a, b) => a - b)
  emit('assigned', { partitions: held })
})

async function obey (command) {
  if (command.command === 'commit') {
    await consumer.commit({
      offsets: Object.entries(command.offsets).map(([partition, offset]) => ({
        topic, partition: Number(partition), offset: BigInt(offset), leaderEpoch: -1
      }))
    })
    emit('committed', { offsets: command.offsets })
    return
  }
  const found = await consumer.listCommittedOffsets({ topics: [{ topic, partitions: command.partitions }] })
  const offsets = {}
  for (const partition of command.partitions) {
    const offset = found.get(topic)?.[partition] ?? -1n
    if (offset >= 0n) {
      offsets[partition] = Number(offset)
    }
  }
  emit('offsets', { offsets })
}

const stream = await consumer.consume({ topics: [topic], autocommit: false, mode: 'committed', fallbackMode: 'earliest' })
stream.on('data', () => {})
stream.on('error', error => console.error(error))

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line)
  if (command.command === 'leave') {
    break
  }
  try {
    await obey(command)
  } catch (error) {
    emit('refused', { error: String(error) })
  }
}
await consumer.close(true)
emit('left')
process.exit(0)
