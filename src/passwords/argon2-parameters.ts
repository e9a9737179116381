/** The parameters in a stored argon2 hash, read without running argon2. */
export interface Argon2Parameters {
  readonly variant: 'argon2id' | 'argon2i' | 'argon2d'
  readonly version: number
  /** Memory in KiB. */
  readonly memoryCost: number
  readonly timeCost: number
  readonly parallelism: number
  readonly saltBytes: number
  readonly hashBytes: number
}

/**
 * The highest costs that a stored hash may have. argon2 runs with the costs that the hash contains. If an attacker wrote a hash with
 * m=2097152 into a row, each login would use 2 GiB and keep every core busy for seconds.
 */
export const argon2Bounds = { memoryCost: 1_048_576, timeCost: 10, parallelism: 8 } as const

const shape =
  /^\$(?<variant>argon2id|argon2i|argon2d)\$v=(?<version>16|19)\$(?<parameters>[mtp]=\d{1,7},[mtp]=\d{1,7},[mtp]=\d{1,7})\$(?<salt>[A-Za-z0-9+/]{11,86})\$(?<hash>[A-Za-z0-9+/]{22,86})$/

/**
 * Returns the parameters of a PHC string with costs within the bounds. Returns null for every other value: garbage, bcrypt, empty, too
 * costly or too short.
 */
export function readArgon2Parameters(hash: unknown): Argon2Parameters | null {
  const found = typeof hash === 'string' && hash.length <= 256 ? shape.exec(hash)?.groups : undefined
  if (!found) return null
  const costs = new Map(`${found['parameters']}`.split(',').map((pair) => [pair.slice(0, 1), Number(pair.slice(2))]))
  const [memoryCost = 0, timeCost = 0, parallelism = 0] = [costs.get('m'), costs.get('t'), costs.get('p')]
  if (!isWithinBounds({ memoryCost, timeCost, parallelism })) return null
  return {
    variant: found['variant'] as Argon2Parameters['variant'], // the expression matches only these three
    version: Number(found['version']),
    memoryCost,
    timeCost,
    parallelism,
    saltBytes: decodedBytes(found['salt']),
    hashBytes: decodedBytes(found['hash']),
  }
}

function isWithinBounds(costs: Pick<Argon2Parameters, 'memoryCost' | 'timeCost' | 'parallelism'>): boolean {
  const { memoryCost, timeCost, parallelism } = costs
  const enoughMemory = memoryCost >= 8 * parallelism // RFC 9106 section 3.1
  const enough = timeCost >= 1 && parallelism >= 1 && enoughMemory
  return enough && memoryCost <= argon2Bounds.memoryCost && timeCost <= argon2Bounds.timeCost && parallelism <= argon2Bounds.parallelism
}

function decodedBytes(base64 = ''): number {
  return Math.floor((base64.length * 3) / 4)
}
