import { isIPv4, isIPv6 } from 'node:net'

/**
 * Returns the key of a client from `req.ip`. An IPv4 address stays unchanged, also if it was mapped into IPv6. An IPv6 address becomes its
 * /64 network, which is one subscriber. All clients without an address share one key, because unknown must never mean unlimited.
 */
export function clientKey(ip: string | undefined): string {
  const address = ip?.replace(/%.*$/s, '') ?? '' // without the zone id of a link-local address, which does not identify the client
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

/** The limit of a whole network (`networkOf`) is this many times the limit of one client. */
export const networkTimes = 10

/** Returns the /48 network of a client's IPv6 /64 network. Null: another kind of client. */
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

/** Returns the two groups of '192.0.2.1' at the end of an address. */
function dottedGroups(dotted: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number)
  return [a * 256 + b, c * 256 + d]
}

/**
 * Returns the IPv4 address of a mapped one (`::ffff:0:0/96`). A socket for IPv4 and IPv6 shows IPv4 clients in this form. Null: it is not
 * mapped.
 */
function mappedIPv4(groups: readonly number[]): string | null {
  const [a, b, c, d, e, marker, high = 0, low = 0] = groups
  if (a || b || c || d || e || marker !== 0xffff) return null
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}
