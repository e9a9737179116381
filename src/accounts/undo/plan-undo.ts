import { hasMatureFactor } from '../../sessions/reauthentication/credential-age'
import { passkeyDigest } from '../../sessions/reauthentication/irreversible-change'
import type { IdentityRecord, PasskeyRecord, UserRecord } from '../../store/auth-store'
import { type FactorState, factorOf, noFactor, type SameFactor, type StoredUndoPoint, type UndoableChange } from './undo-point'

/** An undo always asks for a day, whatever the setting says, because an attacker's factor of an hour ago must not stay. */
const dayOld = { youngCredentialSeconds: 86_400 }

/** The plan of an undo. */
export interface UndoPlan {
  readonly email: string
  readonly factor: FactorState
  readonly keepsRecoveryCodes: boolean
  /** When the mail went out whose link still removes the factor. Null: no such link is left, or the account has no factor. */
  readonly factorMailedAt: Date | null
  /** The names of the providers whose identities the undo removes. */
  readonly removedProviders: readonly string[]
  readonly keptIdentities: readonly IdentityRecord[]
  readonly removedPasskeys: readonly PasskeyRecord[]
  readonly keptPasskeys: readonly PasskeyRecord[]
}

/**
 * Decides what an undo does. A change is final if no undo link can revert the change (`Irreversibility`). The undo restores the
 * address of the point. The undo removes everything that was added since the oldest point that is not final. Final changes since that point
 * stay. The undo restores the second factor of that point, with one exception: if the factor of a point up to `point` was
 * older than 24 hours at that point, the first such point decides. Otherwise an undo would remove the factor that its owner enrolled some
 * days before the attack.
 *
 * @param open the account's open points, oldest first; `point` is one of them
 */
export function planUndo(
  { user, identities, passkeys }: AccountAsItIs,
  point: StoredUndoPoint,
  open: readonly StoredUndoPoint[],
  isSame: SameFactor,
): UndoPlan {
  const oldest = open.find(({ isFinal }) => !isFinal) ?? point
  const since = open.slice(open.indexOf(oldest))
  const upToPoint = open.slice(0, open.indexOf(point) + 1)
  const deciding = upToPoint.find(({ createdAt, factor }) => hasMatureFactor({ now: () => createdAt, settings: dayOld }, factor))
  const isOld = (digest: string) => {
    const passkey = passkeys.find((one) => passkeyDigest(one) === digest)
    return !passkey || passkey.createdAt < oldest.createdAt
  }
  const { factor, final, openSince } = followIrreversible(user, since, { isOld, deciding, isSame })
  const isUnchanged = isSame(factor, factorOf(user))
  const isEnrolment = ({ change, isFinal }: StoredUndoPoint, place: number) =>
    enrolments.has(change) && isFinal === false && isSame(factor, open[place + 1]?.factor ?? factorOf(user))
  const isKept = ({ provider, createdAt }: IdentityRecord) => {
    // If an undo point records the linking, the point decides. Otherwise the date decides. The date comes second, because the host's column
    // may store only whole seconds.
    const linking = since.findLast((one) => one.change === 'identity_linked' && one.provider === provider)
    return linking ? final.has(linking) : createdAt < oldest.createdAt
  }
  const kept = identities.filter(isKept)
  const keptPasskeys = passkeys.filter((passkey) => {
    const adding = addingOf(since, passkeyDigest(passkey))
    return adding ? final.has(adding) : passkey.createdAt < oldest.createdAt
  })
  return {
    email: point.email,
    factor: isUnchanged ? factorOf(user) : factor, // keeps the newest `totpLastStep`, so that used codes stay used
    keepsRecoveryCodes: isUnchanged && openSince.every(({ change }) => change !== 'recovery_codes_regenerated'),
    factorMailedAt: factor.totpEnabledAt && (upToPoint.slice(0, -1).findLast(isEnrolment)?.createdAt ?? null),
    removedProviders: identities.filter((identity) => !kept.includes(identity)).map(({ provider }) => provider),
    keptIdentities: kept,
    removedPasskeys: passkeys.filter((passkey) => !keptPasskeys.includes(passkey)),
    keptPasskeys,
  }
}

/** The account before the undo. */
interface AccountAsItIs {
  readonly user: UserRecord
  readonly identities: readonly IdentityRecord[]
  readonly passkeys: readonly PasskeyRecord[]
}

function addingOf(since: readonly StoredUndoPoint[], digest: string): StoredUndoPoint | undefined {
  return since.findLast(({ change, passkey }) => change === 'passkey_added' && passkey === digest)
}

interface Followed {
  /** The second factor of the point that decides, with the final changes since that point. */
  readonly factor: FactorState
  /** The points of changes that stay. */
  readonly final: ReadonlySet<StoredUndoPoint>
  /** The undo points that are newer than the last final change of the factor. The undo reverts the changes of these points. */
  readonly openSince: readonly StoredUndoPoint[]
}

/**
 * Follows the changes since the oldest point. A final change stays only if the factor or passkey that confirmed the change also stays. The
 * reason is that an attacker can add a factor and wait a day, until the factor can confirm final changes. If the undo removes that factor,
 * the undo must also revert these changes.
 */
function followIrreversible(
  user: UserRecord,
  since: readonly StoredUndoPoint[],
  { isOld, deciding, isSame }: { isOld: (passkey: string) => boolean; deciding: StoredUndoPoint | undefined; isSame: SameFactor },
): Followed {
  let factor = since[0]?.factor ?? noFactor
  let openSince: StoredUndoPoint[] = []
  const final = new Set<StoredUndoPoint>()
  const isConfirmed = ({ isFinal, factor: own }: StoredUndoPoint) => {
    if (isFinal === true) return own.totpSecret !== null && isSame(own, factor)
    if (isFinal === false) return false
    const adding = addingOf(since, isFinal)
    return adding ? final.has(adding) : isOld(isFinal)
  }
  since.forEach((point, place) => {
    if (point === deciding) factor = point.factor
    if (!isConfirmed(point)) {
      openSince.push(point)
      return
    }
    final.add(point)
    if (!factorChanges.has(point.change)) return
    factor = point.change === 'mfa_disabled' ? noFactor : (since[place + 1]?.factor ?? factorOf(user))
    openSince = []
  })
  return { factor, final, openSince }
}

const enrolments: ReadonlySet<UndoableChange> = new Set(['mfa_enabled', 'mfa_replaced'])
const factorChanges: ReadonlySet<UndoableChange> = new Set([...enrolments, 'mfa_disabled'])
