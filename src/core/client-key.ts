import type { IncomingMessage } from 'node:http'
import { isIP, isIPv4 } from 'node:net'

/** The longest text is a quoted IPv6 address in brackets with a zone id and a port. */
const mostCharacters = 128

/** Null: no readable address, as of a client that hung up. Such clients share a key: nobody gets around a limit by hanging up. */
export function clientOf({ ip, socket }: { ip?: string | undefined; socket?: IncomingMessage['socket'] }): string | null {
  const address = ip ?? socket?.remoteAddress // only Express sets `ip`
  const hungUp = address === undefined && (socket?.destroyed === true || socket?.localAddress !== undefined)
  return hungUp ? 'hung-up' : clientKey(address)
}

/** A subscriber usually has a whole /64 network, so an IPv6 address becomes its /64. Null: the text is no address. */
export function clientKey(text: string | null | undefined): string | null {
  const address = readAddress(text)
  if (address === null || isIPv4(address)) return address
  const network = ipv6Groups(address).slice(0, 4)
  return `${network.map((group) => group.toString(16)).join(':')}::/64`
}

/** Prefers a contained IPv4 address. Null: no address, such as `unknown`, `unix:` or `_hidden` (RFC 7239 section 6). */
export function readAddress(text: string | null | undefined): string | null {
  if (typeof text !== 'string' || text.length > mostCharacters) return null
  const bare = text.replace(/^["'\s]+|["'\s]+$/g, '')
  const withoutPort =
    /^\[(.*)\](?::[\w.-]*)?$/.exec(bare)?.[1] ?? bare.replace(/^((?:[\da-f]{1,4}:){7}[\da-f]{1,4}|.*\.\d+):[\w.-]*$/i, '$1')
  const address = withoutPort.replace(/%.*$/s, '')
  if (isIP(address) !== 6) return isIPv4(address) ? address : null
  return containedIPv4(ipv6Groups(address)) ?? address
}

/** The limit of a whole /48 network (`networkOf`), in limits of a client. */
export const networkTimes = 10

/** The /48 of a client's /64. Null: the client's key is not an IPv6 network. */
export function networkOf(client: string): string | null {
  const [, network] = /^((?:[0-9a-f]{1,4}:){2}[0-9a-f]{1,4}):[0-9a-f]{1,4}::\/64$/.exec(client) ?? []
  return network === undefined ? null : `${network}::/48`
}

/** For queues: an IPv4 address, or the /48 of an IPv6 address. Clients without a readable address take turns together. */
export function queueNetwork(client: string | null | undefined): string | undefined {
  return client ? (networkOf(client) ?? client) : undefined
}

/** The address must be valid (RFC 4291 section 2.2). */
function ipv6Groups(address: string): number[] {
  const [head = '', tail] = address.split('::')
  const before = groupsOf(head)
  if (tail === undefined) return before
  const after = groupsOf(tail)
  return [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
}

function groupsOf(part: string): number[] {
  if (part === '') return []
  return part.split(':').flatMap((group) => (group.includes('.') ? dottedGroups(group) : [Number.parseInt(group, 16)]))
}

/** For addresses that end with dotted decimals, for example '192.0.2.1'. */
function dottedGroups(dotted: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number)
  return [a * 256 + b, c * 256 + d]
}

/** IPv4-mapped (`::ffff:0:0/96`, from a socket for both families), IPv4-translated (RFC 2765), and NAT64 (RFC 6052 and RFC 8215). */
const containsIPv4 = /^(?:0:0:0:0:0:ffff|0:0:0:0:ffff:0|64:ff9b:0:0:0:0|64:ff9b:1(?::[\da-f]+){3})$/

function containedIPv4(groups: readonly number[]): string | null {
  const [high = 0, low = 0] = groups.slice(6)
  const prefix = groups.slice(0, 6).map((group) => group.toString(16))
  return containsIPv4.test(prefix.join(':')) ? [high >> 8, high & 255, low >> 8, low & 255].join('.') : null
}
