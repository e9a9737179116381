import { mailNotice } from '../accounts/email-links/send-mail'
import { giveBackSignupMail } from '../accounts/email-links/signup-mails'
import { type SignupOwnership, type VerifiedSignupOwnership, verifySignupOwnership } from '../accounts/email-verification/signup-ownership'
import { announceSignupPasskey, type SignupPasskeyEnd } from '../accounts/email-verification/signup-passkey'
import {
  activating,
  isFirstVerification,
  lockForProof,
  mayActivate,
  type ProofOptions,
  retryingWithoutFields,
  signupOf,
  verifyAddress,
} from '../accounts/email-verification/verify-address'
import { announceActivation, completeFirstActivation, firstActivation } from '../accounts/first-activation'
import { announceTakeOver, type Clearing, isToldOwner, loginAfter, type TakenOver } from '../accounts/take-over'
import { announceChange, type LeaveUndoPoint } from '../accounts/undo/announce-change'
import { type AuthContext, transaction } from '../context'
import type { Settings } from '../core/config/every-setting'
import {
  ApprovalPendingError,
  InvitationRequiredError,
  OAuthAccountInactiveError,
  OAuthEmailMissingError,
  OAuthEmailTakenError,
  OAuthEmailUnverifiedError,
  OAuthProviderAlreadyLinkedError,
  OAuthRegistrationDisabledError,
  ServiceUnavailableError,
  UnauthorizedError,
} from '../core/errors'
import { normalizeEmail } from '../http/email-address'
import type { Locale } from '../http/locale'
import { invitationOfLogin } from '../invitations/invitation'
import { unusablePassword } from '../passwords/verify-password'
import { normalizeProfile } from '../providers/normalize-profile'
import type { OAuthUser } from '../providers/provider-client'
import { isRefusedByState, isWaiting, mayProve } from '../sessions/account-state'
import type { Destination } from '../sessions/destination'
import { type LoginAttempt, newLoginAttempt } from '../sessions/devices/login-limits'
import type { AnyLoginResult, Login, LoginClient } from '../sessions/login'
import { identityUsableAt, usableAt } from '../sessions/reauthentication/methods'
import { type BegunLogin, finishLogin, startLogin } from '../sessions/start-login'
import { DuplicateRecordError, type IdentityRecord, type InvitationRecord, type UserRecord } from '../store/auth-store'
import { newUser } from '../store/user-records'
import { identitiesOf, identityRecord } from './identities'

export interface IdentityLoginOptions {
  /** The language of mails. Default: `defaultLocale`. */
  locale?: Locale
  /** Called only if the login is the first verification of the account's address. */
  evidence?: () => Promise<SignupOwnership>
  /** Where the browser goes at the end, also after a second factor. */
  destination?: Destination | null
  /** The login writes its account here as soon as it has found it. */
  attempt?: LoginAttempt
  /** The token of an invitation, for a new account. */
  invitation?: string | null
}

const rounds = 4

/**
 * Finds, links or creates an account, as `decideIdentity` says. Each round first reads and decides, then acts in one transaction that
 * checks the facts again. If another request has changed them (another tab, an unlink, a sign-up), the next round reads again.
 * @throws OAuthEmailMissingError, OAuthEmailTakenError, OAuthEmailUnverifiedError, OAuthProviderAlreadyLinkedError,
 * OAuthAccountInactiveError, OAuthRegistrationDisabledError, OAuthError (an unusable profile), UnauthorizedError (the account is gone)
 */
export async function logInWithIdentity(
  ctx: AuthContext,
  given: OAuthUser,
  client: LoginClient,
  options: IdentityLoginOptions = {},
): Promise<AnyLoginResult> {
  const profile = normalizeProfile(given.provider, given)
  const locale = options.locale ?? ctx.settings.defaultLocale
  for (let round = 1; round <= rounds; round += 1) {
    const login = await tryOnce(ctx, profile, client, {
      locale,
      destination: options.destination ?? null,
      evidence: options.evidence ?? (async () => ({})),
      attempt: options.attempt ?? newLoginAttempt(null),
      invitation: options.invitation ?? null,
    })
    if (!login) continue
    await giveBackSignupMail(ctx, login.mailedAt ?? null)
    announce(ctx, profile, login, locale)
    return finishLogin(ctx, login.begun, { provider: profile.provider })
  }
  throw new ServiceUnavailableError()
}

async function tryOnce(
  ctx: AuthContext,
  given: OAuthUser,
  client: LoginClient,
  about: Required<IdentityLoginOptions>,
): Promise<SocialLogin | null> {
  const linked = await findLinked(ctx, given)
  // A linked identity decides alone, so its address is not checked.
  const profile = linked ? given : acceptProfile(given)
  const { emailOwner, link } = linked ? { emailOwner: null, link: linked } : await findByEmail(ctx, profile)
  const account = link?.user ?? emailOwner
  about.attempt.userId = account?.id ?? null
  about.attempt.email = account?.email ?? profile.email
  const isEmailOwnerPending = emailOwner !== null && !emailOwner.isActive && (await mayActivate(ctx, emailOwner))
  const invitation = link ? null : await findInvitation(ctx, profile, { token: about.invitation, emailOwner, isEmailOwnerPending })
  const decision = decideIdentity(ctx.settings, profile, { linked: link?.user ?? null, emailOwner, isEmailOwnerPending })
  try {
    if (decision.kind === 'log_in') {
      const linkedAt = link?.identity.createdAt ?? ctx.now()
      return await logInLinked(ctx, decision.user, profile, { client, linkedAt, destination: about.destination })
    }
    if (decision.kind === 'link')
      return await linkByVerifiedEmail(ctx, decision.user, profile, client, { ...about, invitation: invitation?.id ?? null })
    return await createAccount(ctx, { ...profile, email: decision.email }, client, { locale: about.locale, invitation })
  } catch (error) {
    if (error instanceof DuplicateRecordError) return null
    throw error
  }
}

/**
 * An existing account needs none, and ignores the one that was given. Any other refusal would tell whether the address has an account, so
 * this one comes first.
 * @throws InvitationRequiredError
 */
async function findInvitation(
  ctx: AuthContext,
  { email, emailVerified }: OAuthUser,
  { token, emailOwner, isEmailOwnerPending }: { token: string | null; emailOwner: UserRecord | null; isEmailOwnerPending: boolean },
): Promise<InvitationRecord | null> {
  if (email === null) return null
  const isVerified = emailVerified === true
  const isLinked = emailOwner !== null && isVerified && ctx.settings.oauthLinkByVerifiedEmail
  if (isLinked && !isEmailOwnerPending) return null
  const invitation = await invitationOfLogin(ctx, token, { email, isVerified, isPending: isLinked })
  // Who saw the token can claim the address. The token of a mail shows the mailbox.
  if (invitation && invitation.email !== null && !invitation.isMailed && !isVerified) throw new InvitationRequiredError()
  return invitation
}

/** A first login in another tab may have linked the identity since the search by identity, so this searches for the link again. */
async function findByEmail(ctx: AuthContext, profile: OAuthUser): Promise<{ emailOwner: UserRecord | null; link: Link | null }> {
  if (profile.email === null) return { link: null, emailOwner: null }
  const emailOwner = await ctx.store.users.findByEmail(profile.email)
  return { link: emailOwner && (await findLinked(ctx, profile)), emailOwner }
}

interface Link {
  readonly user: UserRecord
  readonly identity: IdentityRecord
}

/** @throws UnauthorizedError when the account was deleted without its identity */
async function findLinked(ctx: AuthContext, { provider, subject }: OAuthUser): Promise<Link | null> {
  const found = await identitiesOf(ctx).findWithUser(provider, subject)
  if (!found) return null
  if (!found.user) throw new UnauthorizedError()
  return { user: found.user, identity: found.identity }
}

function announce(
  ctx: AuthContext,
  { provider }: OAuthUser,
  { did, takenOver, activated, created, passkey }: SocialLogin,
  locale: Locale,
): void {
  if (activated) announceActivation(ctx, activated, locale)
  if (passkey) announceSignupPasskey(ctx, passkey.user, passkey.end, locale)
  if (takenOver) announceTakeOver(ctx, takenOver.user, takenOver.what, { locale, ...(did === 'linked' && { provider }) })
  if (created) announceActivation(ctx, created, locale)
}

/** An email that is not valid counts as missing. */
export function acceptProfile(given: OAuthUser): OAuthUser {
  const profile = normalizeProfile(given.provider, given)
  // Nobody typed this address. With a blank it is another address to the provider, so it must not become somebody's.
  const hasBlank = typeof profile.email === 'string' && profile.email !== profile.email.trim()
  const email = hasBlank ? null : normalizeEmail(profile.email)
  return { ...profile, email, emailVerified: email === null ? null : profile.emailVerified }
}

interface FoundAccounts {
  linked: UserRecord | null
  emailOwner: UserRecord | null
  /** True: this login can be the first verification of the pending account's address. */
  isEmailOwnerPending?: boolean
}

type IdentityDecision = { kind: 'log_in'; user: UserRecord } | { kind: 'link'; user: UserRecord } | { kind: 'create'; email: string }

type Rules = Pick<Settings, 'oauthLinkByVerifiedEmail' | 'oauthAllowAccountCreation'>

/** A link decides alone. The email decides only without a link. */
export function decideIdentity(
  settings: Rules,
  profile: Pick<OAuthUser, 'email' | 'emailVerified'>,
  found: FoundAccounts,
): IdentityDecision {
  if (found.linked) return { kind: 'log_in', user: mayProve(found.linked) ? found.linked : active(found.linked) }
  if (profile.email === null) throw new OAuthEmailMissingError()
  if (found.emailOwner) {
    if (!settings.oauthLinkByVerifiedEmail) throw new OAuthEmailTakenError()
    if (profile.emailVerified !== true) throw new OAuthEmailUnverifiedError() // an unknown state (null) does not count as verified
    return { kind: 'link', user: found.isEmailOwnerPending ? found.emailOwner : active(found.emailOwner) }
  }
  if (!settings.oauthAllowAccountCreation) throw new OAuthRegistrationDisabledError()
  return { kind: 'create', email: profile.email }
}

function active(user: UserRecord): UserRecord {
  if (isWaiting(user)) throw new ApprovalPendingError()
  if (!user.isActive) throw new OAuthAccountInactiveError() // nothing of a leaving account is shown to somebody who has no credential of it
  return user
}

/**
 * An attacker may have registered an account with an unverified address before the owner came (pre-hijacking). So the same transaction
 * first takes it over, unless the request identifies the owner (`SignupOwnership`). Activates a pending account. If the address was
 * verified before, the owner gets a notice and can undo the link. Null if the account changed since it was read.
 */
async function linkByVerifiedEmail(
  ctx: AuthContext,
  seen: UserRecord,
  profile: OAuthUser,
  client: LoginClient,
  { locale, evidence, destination, invitation }: VerifiedLink,
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
    verifyAndLink(ctx, seen, profile, client, { weighed, clearing, destination, invitation }),
  )
  // One mail only: the notice of a take-over also mentions the link.
  if (login && !(login.takenOver && isToldOwner(login.takenOver.what))) mailNotice(ctx, seen, 'identity_linked', locale, { provider })
  return login
}

interface VerifiedLink {
  readonly locale: Locale
  readonly evidence: () => Promise<SignupOwnership>
  readonly destination: Destination | null
  /** The id of the invitation that the login brought. */
  readonly invitation: string | null
}

interface FirstProof {
  readonly weighed: VerifiedSignupOwnership
  readonly clearing: Clearing
}

/** The link is the first verification of the address, and activates a pending account. */
function verifyAndLink(
  ctx: AuthContext,
  seen: UserRecord,
  profile: OAuthUser,
  client: LoginClient,
  { weighed, clearing, destination, invitation }: Pick<VerifiedLink, 'destination' | 'invitation'> & FirstProof,
): Promise<SocialLogin | null> {
  const isActivation = !seen.isActive
  return transaction(ctx, async (ctx) => {
    const user = await lockForProof(ctx, seen, profile.email)
    if (!user) return null
    const { mailedAt = null, ...activation }: ProofOptions & { readonly mailedAt?: Date | null } = isActivation
      ? await activating(ctx, user, clearing)
      : {}
    const {
      user: proven,
      takenOver,
      passkey,
    } = await verifyAddress(ctx, user, weighed, {
      ...activation,
      isActivation,
      invitation: invitation ?? activation.invitation ?? null,
    })
    // After a take-over, this identity is the account's only credential, so it does not count as new.
    const isYoung = !takenOver && usableAt(ctx, ctx.now()) !== null
    const { provider, sid: providerSid } = profile
    const login: Login = { amr: ['ext'], provider, providerSid, isYoung, destination, ...loginAfter(ctx, takenOver) }
    const linked = await link(ctx, proven, profile, { client, login })
    return (
      linked && {
        ...linked,
        ...(isActivation && { activated: proven }),
        mailedAt,
        passkey: { user: proven, end: passkey },
        ...(takenOver && { takenOver: { user: proven, what: takenOver } }),
      }
    )
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
  await ctx.store.users.update(user.id, { ...(user.isActive && { lastLoginAt: now }), updatedAt: now })
  ctx.events.emit('identity.linked', { userId: user.id, provider: profile.provider })
  return { begun: await startLogin(ctx, client, user, login), did: 'linked' }
}

interface SocialLogin {
  begun: BegunLogin
  did: 'logged_in' | 'linked' | 'created'
  /** From an account with an unverified address. */
  takenOver?: { user: UserRecord; what: TakenOver }
  /** The account was pending until this login. */
  activated?: UserRecord
  created?: UserRecord
  /** The activation link that this login made needless. */
  mailedAt?: Date | null
  /** Of the sign-up that the login activates. */
  passkey?: { user: UserRecord; end: SignupPasskeyEnd }
}

/** Null if the facts changed after `seen` was read. @param linkedAt a new link can log in, but cannot confirm a sensitive change */
async function logInLinked(
  ctx: AuthContext,
  seen: UserRecord,
  { provider, subject, sid: providerSid }: OAuthUser,
  { client, linkedAt, destination }: { client: LoginClient; linkedAt: Date; destination: Destination | null },
): Promise<SocialLogin | null> {
  return transaction(ctx, async (ctx) => {
    const user = seen.isActive
      ? await identitiesOf(ctx).recordLogin({ userId: seen.id, provider, subject }, ctx.now())
      : await holdRefused(ctx, seen, { provider, subject })
    if (user?.id !== seen.id) return null // an adapter can return another user's row by mistake
    // The address was verified meanwhile. If that was a take-over, the identity is young now, so the caller reads it again.
    if (user.emailVerifiedAt?.getTime() !== seen.emailVerifiedAt?.getTime()) return null
    const isYoung = identityUsableAt(ctx, user, linkedAt) !== null
    const login = { amr: ['ext'], provider, providerSid, isYoung, destination } as const
    return { begun: await startLogin(ctx, client, user, login), did: 'logged_in' }
  })
}

/** The account opens no session, so no time of a login is written. Null: the facts changed. */
async function holdRefused(ctx: AuthContext, seen: UserRecord, of: Pick<OAuthUser, 'provider' | 'subject'>): Promise<UserRecord | null> {
  const user = await ctx.store.users.lock(seen.id)
  const linked = await identitiesOf(ctx).listForUser(seen.id)
  const isLinked = linked.some(({ provider, subject }) => provider === of.provider && subject === of.subject)
  return user && isLinked && isRefusedByState(user) ? user : null
}

async function createAccount(
  ctx: AuthContext,
  { email, ...profile }: OAuthUser & { email: string },
  client: LoginClient,
  { locale, invitation }: { locale: Locale; invitation: InvitationRecord | null },
): Promise<SocialLogin> {
  const now = ctx.now()
  // A mailed token verifies the address that it was mailed to, and the check of the invitation compared this address.
  const isVerified = profile.emailVerified === true || invitation?.isMailed === true
  return transaction(ctx, async (ctx) => {
    const activation = firstActivation(ctx, { invitation: invitation?.id ?? null })
    const account = newUser(now, {
      email,
      hashedPassword: unusablePassword(),
      name: profile.name ?? ctx.texts.say(locale, 'account.placeholder_name'),
      lastLoginAt: activation.isActive ? now : null,
      emailVerifiedAt: isVerified ? now : null,
      ...activation,
    })
    const user = await ctx.store.users.insert(account, { by: 'provider', profile: { ...profile, email } })
    await identitiesOf(ctx).insert(identityRecord(user.id, { ...profile, email }, now))
    ctx.events.emit('signup', { userId: user.id, by: 'ext', provider: profile.provider })
    ctx.events.emit('identity.linked', { userId: user.id, provider: profile.provider })
    await completeFirstActivation(ctx, user, invitation?.id ?? null, { isNew: true })
    const login = { amr: ['ext'], provider: profile.provider, providerSid: profile.sid } as const
    return { begun: await startLogin(ctx, client, user, login), did: 'created', created: user }
  })
}
