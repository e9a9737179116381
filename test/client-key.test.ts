import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { clientKey, clientOf, readAddress } from '../src/core/client-key'

test.each([
  ['192.0.2.1', '192.0.2.1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:c000:0201', '192.0.2.1'],
  ['0:0:0:0:0:ffff:192.0.2.1', '192.0.2.1'],
  ['::ffff:0.0.0.0', '0.0.0.0'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::', '2001:db8:1:2::/64'],
  ['2001:0DB8:0001:0002::1', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:db8:1:2:3:4:192.0.2.1', '2001:db8:1:2::/64'],
  ['::1', '0:0:0:0::/64'],
  ['::', '0:0:0:0::/64'],
  ['1::', '1:0:0:0::/64'],
  ['::2:3:4:5:6:7:8', '0:2:3:4::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  ['fe80::1%25eth0:1', 'fe80:0:0:0::/64'],
  ['::ffff:192.0.2.1%lo', '192.0.2.1'],
])('%s is the client %s', (ip, client) => {
  expect(clientKey(ip)).toBe(client)
})

test.each([
  ['192.0.2.1:80', '192.0.2.1'],
  ['192.0.2.1:', '192.0.2.1'],
  ['192.0.2.1:_port', '192.0.2.1'],
  [' 192.0.2.1 ', '192.0.2.1'],
  ['"192.0.2.1:443"', '192.0.2.1'],
  ['::ffff:192.0.2.1:443', '192.0.2.1'],
  ['[::ffff:192.0.2.1]:443', '192.0.2.1'],
  ['[::ffff:c000:201]', '192.0.2.1'],
  ['[2001:db8:1:2::1]', '2001:db8:1:2::/64'],
  ['[2001:db8:1:2::1]:51234', '2001:db8:1:2::/64'],
  ['"[2001:db8:1:2::1]:_port"', '2001:db8:1:2::/64'],
  ['[fe80::1%eth0]:80', 'fe80:0:0:0::/64'],
  ['2001:db8:1:2:3:4:5:6:51234', '2001:db8:1:2::/64'],
  ['64:ff9b::192.0.2.1', '192.0.2.1'],
  ['64:ff9b::c000:201', '192.0.2.1'],
  ['[64:FF9B::c000:201]:443', '192.0.2.1'],
  ['64:ff9b:1::192.0.2.1', '192.0.2.1'],
  ['64:ff9b:1:7:8:9:c000:201', '192.0.2.1'],
  ['::ffff:0:192.0.2.1', '192.0.2.1'],
  ['64:ff9b:2::c000:201', '64:ff9b:2:0::/64'],
])('a proxy may write %s for the client %s', (text, client) => {
  expect(clientKey(text)).toBe(client)
})

test.each([
  [undefined],
  [''],
  ['unknown'],
  ['unix:'],
  ['192.0.2'],
  ['192.0.2.1, 198.51.100.1'],
  ['192.0.2.01'],
  ['192.0.2.1:80:80'],
  ['[192.0.2.1'],
  ['[]:80'],
  ['1:2:3:4:5:6:7:8:9:10'],
  ['::1::'],
  ['%eth0'],
  ['\n'],
  ['_hidden'],
  [`${'1.1.1.1:'.repeat(1_000)}!`],
])('%j is no address', (text) => {
  expect(clientKey(text)).toBe(null)
  expect(readAddress(text)).toBe(null)
})

test('a client that hung up keeps a limit: all such clients share one', async () => {
  const clients = new Map<string, string | null>()
  const server = createServer((socket) => {
    clients.set('open', clientOf({ socket }))
    socket.destroy()
    clients.set('hung up', clientOf({ socket: Object.defineProperty(socket, 'remoteAddress', { value: undefined }) }))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  await once(connect(port, '127.0.0.1').resume(), 'close')
  server.close()

  expect([...clients]).toEqual([
    ['open', '127.0.0.1'],
    ['hung up', 'hung-up'],
  ])
})

/** The same address as the WHATWG URL parser writes it. */
function normalised(address: string): string {
  return new URL(`http://[${address}]/`).hostname.slice(1, -1)
}

test('however an address is written, it is one client; within a /64 all are one, across it none', () => {
  const group = fc.integer({ min: 0, max: 0xffff })
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), fc.array(group, { minLength: 4, maxLength: 4 }), (groups, others) => {
      fc.pre(groups.slice(0, 5).some((value) => value !== 0))
      const plain = groups.map((value) => value.toString(16)).join(':')
      const padded = groups.map((value) => value.toString(16).padStart(4, '0').toUpperCase()).join(':')
      const neighbour = [...groups.slice(0, 4), ...others].map((value) => value.toString(16)).join(':')
      const stranger = [(groups[0] ?? 0) ^ 1, ...groups.slice(1)].map((value) => value.toString(16)).join(':')
      const key = clientKey(plain)
      expect(key).not.toBe(null)
      expect(clientKey(normalised(plain))).toBe(key)
      expect(clientKey(padded)).toBe(key)
      expect(clientKey(`${plain}%eth1`)).toBe(key)
      if (groups.slice(0, 4).some((value) => value !== 0)) expect(clientKey(neighbour)).toBe(key)
      expect(clientKey(stranger)).not.toBe(key)
    }),
    { numRuns: 2_000 },
  )
})

test('any IPv4 address is the same client mapped into IPv6, dotted or in hex', () => {
  fc.assert(
    fc.property(fc.ipV4(), (ip) => {
      expect(clientKey(ip)).toBe(ip)
      for (const prefix of ['::ffff:', '64:ff9b::']) expect(clientKey(`[${prefix}${ip}]:443`)).toBe(ip)
      expect(clientKey(`::ffff:${ip}`)).toBe(ip)
      expect(clientKey(normalised(`::ffff:${ip}`))).toBe(ip)
    }),
  )
})

test('no text makes it throw', () => {
  fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => typeof clientKey(text) !== 'undefined'))
})
