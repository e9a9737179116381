import { type AuthContext, unitOfWork } from '../context'
import { OAuthProviderAlreadyLinkedError } from '../errors'
import { isContested } from '../first-proof/contested'
import { type Evidence, type WeighedEvidence, weighEvidence } from '../first-proof/evidence'
import { isFirstProof, type ProofOptions, proveAddress } from '../first-proof/prove-address'
import { retryingWithoutFields } from '../first-proof/retrying-without-fields'
import { signupMarkOf } from '../first-proof/signup-binding'
import type { Clearing } from '../first-proof/take-over'
import type { Locale } from '../http/locale'
import { isPending } from '../mailbox/is-pending'
import { refusesEmailLink } from '../mailbox/refuses-email-link'
import { mailNotice } from '../mailbox/send-mail'
import type { OAuthUser } from '../providers/provider-client'
import { finishOrPostpone, withClaims } from '../session/claims-of-login'
import type { Destination } from '../session/destination'
import type { Login, OpenedSession, OpenSession } from '../session/finish-login'
import type { UserRecord, UserTokenRecord } from '../store/auth-store'
import { announceChange, type LeaveUndoPoint } from '../undo/announce-change'
import { identitiesOf, identityRecord } from './identities'
import type { SocialLogin } from './log-in-with-identity'

/**
 * Links a verified address's identity to the account that holds the address. Where that account never proved the
 * address, whoever registered it first may be a stranger waiting for the owner (pre-hijacking): then the account is taken over first, in
 * the same unit, unless the request tells that the owner is already in.
 *
 * An account that waits for its activation is activated by it, and taken over like any other.
 *
 * Into an account that has proven its address the owner can undo it, by the link of the notice.
 *
 * Null when the account changed since it was looked at.
 */
export async function linkByVerifiedEmail<Session extends OpenedSession>(
  ctx: AuthContext,
  seen: UserRecord,
  profile: OAuthUser,
  open: OpenSession<Session>,
  { locale, evidence, destination }: { locale: Locale; evidence: () => Promise<Evidence>; destination: Destination | null },
): Promise<SocialLogin<Session> | null> {
  const { provider } = profile
  if (!isFirstProof(ctx, seen, !seen.isActive)) {
    const login = await withClaims(ctx, seen, { amr: ['ext'], provider, isYoung: true, destination }, open)
    return announceChange(ctx, seen.id, { topic: 'identity_linked', locale, provider }, (leaveUndoPoint) =>
      unitOfWork(ctx, async (ctx) => {
        const user = await lockAsSeen(ctx, seen, profile)
        return user && link(ctx, user, profile, { open, login, leaveUndoPoint })
      }),
    )
  }
  const weighed = await weighEvidence(ctx, seen, await evidence(), await signupOf(ctx, seen))
  const login = await retryingWithoutFields(ctx, (clearing) => proveAndLink(ctx, seen, profile, open, { weighed, clearing, destination }))
  // One mail for one person: that of a take-over says it too.
  if (login && !login.takenOver?.what.removed.length) mailNotice(ctx, seen, 'identity_linked', locale, { provider })
  return login
}

/** The first proof of the address. An account that waited for its activation has it by that. */
function proveAndLink<Session extends OpenedSession>(
  ctx: AuthContext,
  seen: UserRecord,
  profile: OAuthUser,
  open: OpenSession<Session>,
  { weighed, clearing, destination }: { weighed: WeighedEvidence; clearing: Clearing; destination: Destination | null },
): Promise<SocialLogin<Session> | null> {
  const isActivation = !seen.isActive
  return unitOfWork(ctx, async (ctx) => {
    const user = await lockAsSeen(ctx, seen, profile)
    if (!user) return null
    const activation = isActivation ? await activating(ctx, user, clearing) : {}
    const { user: proven, takenOver } = await proveAddress(ctx, user, weighed, { isActivation, ...activation })
    // After a take-over nothing else is left of the account: it begins with this identity.
    const login: Login = { amr: ['ext'], provider: profile.provider, isYoung: !takenOver, destination }
    const linked = await link(ctx, proven, profile, { open, login })
    return linked && { ...linked, isActivated: isActivation, ...(takenOver && { takenOver: { user: proven, what: takenOver } }) }
  })
}

/** Null when the account changed since it was looked at. */
async function lockAsSeen(ctx: AuthContext, seen: UserRecord, { email }: OAuthUser): Promise<UserRecord | null> {
  const user = await ctx.store.users.lock(seen.id)
  if (user?.email !== email || user.isActive !== seen.isActive) return null
  if (isFirstProof(ctx, user, !user.isActive) !== isFirstProof(ctx, seen, !seen.isActive)) return null
  return user.isActive || ((await newestLink(ctx, user)) && (await isPending(ctx, user))) ? user : null
}

/**
 * True for an account that waits for its activation, whose address nobody has proven. Whoever signed up with a stranger's address must not
 * keep that person from signing in by a provider. Only while its activation link works, because an app may have switched off accounts that
 * were never activated here. Not where the host refuses mailed links to the account.
 */
export async function mayActivate(ctx: AuthContext, user: UserRecord): Promise<boolean> {
  const waits = isFirstProof(ctx, user, true) && (await newestLink(ctx, user)) !== undefined && (await isPending(ctx, user))
  return waits && !(await refusesEmailLink(ctx, user))
}

async function newestLink(ctx: AuthContext, { id }: Pick<UserRecord, 'id'>): Promise<UserTokenRecord | undefined> {
  return (await ctx.store.userTokens.listOpen(id, 'ACTIVATION', ctx.now())).at(-1)
}

/** What an activation does besides, whichever way the address is proven. Read before its links end. */
async function activating(ctx: AuthContext, user: UserRecord, clearing: Clearing): Promise<ProofOptions> {
  const now = ctx.now()
  const [signup, hasRivals] = [await signupOf(ctx, user), await isContested(ctx, user)]
  await ctx.store.userTokens.consumeAllForUser(user.id, now, ['ACTIVATION', 'CONTESTED'])
  return { signup, clearing: hasRivals ? clearing : 'nothing', changes: { isActive: true, activatedAt: now } }
}

/** The signup that the account's living activation link belongs to: the browser that made it is the owner's. */
async function signupOf(ctx: AuthContext, { id, isActive }: UserRecord): Promise<string | null> {
  const newest = isActive ? undefined : await newestLink(ctx, { id })
  return newest ? (signupMarkOf(newest)?.id ?? null) : null
}

interface Linking<Session extends OpenedSession> {
  readonly login: Login
  readonly open: OpenSession<Session>
  readonly leaveUndoPoint?: LeaveUndoPoint
}

async function link<Session extends OpenedSession>(
  ctx: AuthContext,
  user: UserRecord,
  profile: OAuthUser,
  { open, login, leaveUndoPoint }: Linking<Session>,
): Promise<SocialLogin<Session> | null> {
  const now = ctx.now()
  const linked = await identitiesOf(ctx).listForUser(user.id)
  const sameProvider = linked.find((identity) => identity.provider === profile.provider)
  if (sameProvider?.subject === profile.subject) return null // another tab was first
  if (sameProvider) throw new OAuthProviderAlreadyLinkedError()
  await leaveUndoPoint?.(ctx, { user })
  await identitiesOf(ctx).insert(identityRecord(user.id, profile, now))
  await ctx.store.users.update(user.id, { lastLoginAt: now, updatedAt: now })
  return { result: await finishOrPostpone(ctx, user, login, open), did: 'linked' }
}
