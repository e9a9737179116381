import { mailNotice } from '../accounts/email-links/send-mail'
import { type SignupOwnership, type VerifiedSignupOwnership, verifySignupOwnership } from '../accounts/email-verification/signup-ownership'
import {
  activating,
  isFirstVerification,
  lockForProof,
  retryingWithoutFields,
  signupOf,
  verifyAddress,
} from '../accounts/email-verification/verify-address'
import { type Clearing, isToldOwner } from '../accounts/take-over'
import { announceChange, type LeaveUndoPoint } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import { OAuthProviderAlreadyLinkedError } from '../core/errors'
import type { Locale } from '../http/locale'
import type { OAuthUser } from '../providers/provider-client'
import type { Destination } from '../sessions/destination'
import type { Login, LoginClient } from '../sessions/login'
import { usableAt } from '../sessions/reauthentication/methods'
import { startLogin } from '../sessions/start-login'
import type { UserRecord } from '../store/auth-store'
import { identitiesOf, identityRecord } from './identities'
import type { SocialLogin } from './log-in-linked'

/**
 * Links an identity with a verified address to the account of that address. If the account never verified its address, an attacker may have
 * registered the account before the owner came (pre-hijacking). In that case, the same transaction first takes the account over: it removes
 * the earlier credentials. If the request identifies the owner (`SignupOwnership`), no take-over happens.
 *
 * If the account waits for its activation, this link also activates the account. In that case, the rule about the take-over applies too.
 *
 * If the account had verified its address before, the owner gets a notice and can undo the link.
 *
 * Returns null if the account changed since it was read.
 */
export async function linkByVerifiedEmail(
  ctx: AuthContext,
  seen: UserRecord,
  profile: OAuthUser,
  client: LoginClient,
  { locale, evidence, destination }: { locale: Locale; evidence: () => Promise<SignupOwnership>; destination: Destination | null },
): Promise<SocialLogin | null> {
  const { provider, sid: providerSid } = profile
  if (!isFirstVerification(ctx, seen, !seen.isActive)) {
    const isYoung = usableAt(ctx, ctx.now()) !== null
    const login: Login = { amr: ['ext'], provider, providerSid, isYoung, destination }
    return announceChange(ctx, seen.id, { topic: 'identity_linked', locale, provider }, (leaveUndoPoint) =>
      transaction(ctx, async (ctx) => {
        const user = await lockForProof(ctx, seen, profile.email)
        return user && link(ctx, user, profile, { client, login, leaveUndoPoint })
      }),
    )
  }
  const weighed = await verifySignupOwnership(ctx, seen, await evidence(), await signupOf(ctx, seen))
  const login = await retryingWithoutFields(ctx, (clearing) =>
    verifyAndLink(ctx, seen, profile, client, { weighed, clearing, destination }),
  )
  // Sends only one mail, because the notice of a take-over also mentions the link.
  if (login && !(login.takenOver && isToldOwner(login.takenOver.what))) mailNotice(ctx, seen, 'identity_linked', locale, { provider })
  return login
}

/**
 * Links the identity. The link is the first verification of the address. If the account waited for its activation, the link activates the
 * account.
 */
function verifyAndLink(
  ctx: AuthContext,
  seen: UserRecord,
  profile: OAuthUser,
  client: LoginClient,
  { weighed, clearing, destination }: { weighed: VerifiedSignupOwnership; clearing: Clearing; destination: Destination | null },
): Promise<SocialLogin | null> {
  const isActivation = !seen.isActive
  return transaction(ctx, async (ctx) => {
    const user = await lockForProof(ctx, seen, profile.email)
    if (!user) return null
    const activation = isActivation ? await activating(ctx, user, clearing) : {}
    const { user: proven, takenOver } = await verifyAddress(ctx, user, weighed, { isActivation, ...activation })
    // After a take-over, this identity is the only credential of the account, so it does not count as new.
    const isYoung = !takenOver && usableAt(ctx, ctx.now()) !== null
    const login: Login = { amr: ['ext'], provider: profile.provider, providerSid: profile.sid, isYoung, destination }
    const linked = await link(ctx, proven, profile, { client, login })
    return linked && { ...linked, isActivated: isActivation, ...(takenOver && { takenOver: { user: proven, what: takenOver } }) }
  })
}

interface Linking {
  readonly login: Login
  readonly client: LoginClient
  readonly leaveUndoPoint?: LeaveUndoPoint
}

async function link(
  ctx: AuthContext,
  user: UserRecord,
  profile: OAuthUser,
  { client, login, leaveUndoPoint }: Linking,
): Promise<SocialLogin | null> {
  const now = ctx.now()
  const linked = await identitiesOf(ctx).listForUser(user.id)
  const sameProvider = linked.find((identity) => identity.provider === profile.provider)
  if (sameProvider?.subject === profile.subject) return null // another tab was first
  if (sameProvider) throw new OAuthProviderAlreadyLinkedError()
  await leaveUndoPoint?.(ctx, { user })
  await identitiesOf(ctx).insert(identityRecord(user.id, profile, now))
  await ctx.store.users.update(user.id, { lastLoginAt: now, updatedAt: now })
  return { begun: await startLogin(ctx, client, user, login), did: 'linked' }
}
