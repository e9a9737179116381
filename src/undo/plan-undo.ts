import type { IdentityRecord, UserRecord } from '../store/auth-store'
import { type FactorState, factorOf, noFactor, type StoredUndoPoint } from './undo-point'

/** What an undo makes of an account. */
export interface UndoPlan {
  readonly email: string
  readonly factor: FactorState
  readonly keepsRecoveryCodes: boolean
  /** The registration keys of identities that are removed. */
  readonly removedProviders: readonly string[]
  readonly keptIdentities: readonly IdentityRecord[]
}

/**
 * Decides what an undo does (contract 24.6): back to the address of the point, everything removed that was added since the oldest point
 * that can still be undone, the factor as it was then. What a final request did since then stays.
 *
 * @param open the account's open points, oldest first, among them `point`
 */
export function planUndo(
  { user, identities }: { user: UserRecord; identities: readonly IdentityRecord[] },
  point: StoredUndoPoint,
  open: readonly StoredUndoPoint[],
): UndoPlan {
  const oldest = open.find(({ isFinal }) => !isFinal) ?? point
  const since = open.slice(open.indexOf(oldest))
  const { factor, final, openSince } = followFinal(user, since)
  const isUnchanged = isSameFactor(factor, factorOf(user))
  const isKept = ({ provider, createdAt }: IdentityRecord) => {
    // Asked before the dates: a column of a host may keep whole seconds.
    const linking = since.findLast((one) => one.change === 'identity_linked' && one.provider === provider)
    return linking ? final.has(linking) : createdAt < oldest.createdAt
  }
  const kept = identities.filter(isKept)
  return {
    email: point.email,
    factor: isUnchanged ? factorOf(user) : factor, // its codes that were used since stay used
    keepsRecoveryCodes: isUnchanged && openSince.every(({ change }) => change !== 'recovery_codes_regenerated'),
    removedProviders: identities.filter((identity) => !kept.includes(identity)).map(({ provider }) => provider),
    keptIdentities: kept,
  }
}

interface Followed {
  /** The second factor as it was at the oldest point, or what final changes made of it since. */
  readonly factor: FactorState
  /** The points of changes that stay. */
  readonly final: ReadonlySet<StoredUndoPoint>
  /** The points of changes that do not stay, since the factor last changed for good. */
  readonly openSince: readonly StoredUndoPoint[]
}

/**
 * A final change stays only if the factor that confirmed it stays, too. A thief's own factor is older than a day tomorrow: what it
 * confirms then goes with it.
 */
function followFinal(user: UserRecord, since: readonly StoredUndoPoint[]): Followed {
  let factor = since[0]?.factor ?? noFactor
  let openSince: StoredUndoPoint[] = []
  const final = new Set<StoredUndoPoint>()
  since.forEach((point, place) => {
    if (!point.isFinal || point.factor.totpSecret === null || point.factor.totpSecret !== factor.totpSecret) {
      openSince.push(point)
      return
    }
    final.add(point)
    if (point.change !== 'mfa_replaced' && point.change !== 'mfa_disabled') return
    factor = point.change === 'mfa_disabled' ? noFactor : (since[place + 1]?.factor ?? factorOf(user))
    openSince = []
  })
  return { factor, final, openSince }
}

function isSameFactor(one: FactorState, other: FactorState): boolean {
  return one.totpSecret === other.totpSecret && one.totpEnabledAt?.getTime() === other.totpEnabledAt?.getTime()
}
