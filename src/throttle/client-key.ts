import { isIPv4, isIPv6 } from 'node:net'

/**
 * Returns the key of a client from `req.ip`. An IPv4 address is its own key. If an IPv4 address is mapped into IPv6, the key is the plain
 * IPv4 address. An IPv6 address becomes its /64 network, because a subscriber usually has a whole /64 network. All clients without an
 * address share one key, because a missing address must never mean an unlimited client.
 */
export function clientKey(ip: string | undefined): string {
  const address = ip?.replace(/%.*$/s, '') ?? '' // without the zone id, which does not identify the client
  if (isIPv4(address)) return address
  if (!isIPv6(address)) return 'unknown'
  const groups = ipv6Groups(address)
  return (
    mappedIPv4(groups) ??
    `${groups
      .slice(0, 4)
      .map((group) => group.toString(16))
      .join(':')}::/64`
  )
}

/** The limit of a whole /48 network (`networkOf`) is this many times the limit of a client. */
export const networkTimes = 10

/** Returns the /48 network that contains a client's IPv6 /64 network. Returns null if the client's key is not an IPv6 network. */
export function networkOf(client: string): string | null {
  const [, network] = /^((?:[0-9a-f]{1,4}:){2}[0-9a-f]{1,4}):[0-9a-f]{1,4}::\/64$/.exec(client) ?? []
  return network === undefined ? null : `${network}::/48`
}

/** Returns the eight groups of a valid address (RFC 4291 section 2.2). */
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

/** Returns the last two groups of an address that ends with dotted decimals, for example '192.0.2.1'. */
function dottedGroups(dotted: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number)
  return [a * 256 + b, c * 256 + d]
}

/**
 * Returns the IPv4 address that is mapped into an IPv6 address (`::ffff:0:0/96`). A socket for IPv4 and IPv6 shows IPv4 clients in that
 * form. Returns null if the address is not mapped.
 */
function mappedIPv4(groups: readonly number[]): string | null {
  const [a, b, c, d, e, marker, high = 0, low = 0] = groups
  if (a || b || c || d || e || marker !== 0xffff) return null
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}
