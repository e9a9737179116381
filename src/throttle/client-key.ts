import { isIPv4, isIPv6 } from 'node:net'

/**
 * One name for one client, from `req.ip`: an IPv4 address as it is (also when mapped into IPv6), an IPv6 address as its
 * /64, which is what one subscriber gets. Without an address all share one key: unknown never means unlimited.
 */
export function clientKey(ip: string | undefined): string {
  const address = ip?.replace(/%.*$/s, '') ?? '' // the zone id of a link-local address says nothing about the client
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

/** How many times the budget of one client the whole network of `networkOf` has. */
export const networkTimes = 10

/** Returns the /48 of a client that is named by its IPv6 /64; null for every other client. */
export function networkOf(client: string): string | null {
  const [, network] = /^((?:[0-9a-f]{1,4}:){2}[0-9a-f]{1,4}):[0-9a-f]{1,4}::\/64$/.exec(client) ?? []
  return network === undefined ? null : `${network}::/48`
}

/** The eight groups of a valid address (RFC 4291 section 2.2). */
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

/** '192.0.2.1' at the end of an address stands for two groups. */
function dottedGroups(dotted: string): number[] {
  const [a = 0, b = 0, c = 0, d = 0] = dotted.split('.').map(Number)
  return [a * 256 + b, c * 256 + d]
}

/** `::ffff:0:0/96`: how a socket that listens on both families shows an IPv4 client. */
function mappedIPv4(groups: readonly number[]): string | null {
  const [a, b, c, d, e, marker, high = 0, low = 0] = groups
  if (a || b || c || d || e || marker !== 0xffff) return null
  return [high >> 8, high & 255, low >> 8, low & 255].join('.')
}
