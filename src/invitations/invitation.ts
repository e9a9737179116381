import type { AuthContext } from '../context'
import { ConfigurationError, InvitationRequiredError } from '../core/errors'
import { hashOpaqueToken, isOpaqueToken } from '../core/opaque-token'
import type { InvitationRecord, InvitationStore, InvitationUseStore } from '../store/auth-store'

/** The boot checks require both tables. @throws ConfigurationError while `invitationsEnabled` is off */
export function requireInvitations({ settings, store }: Pick<AuthContext, 'settings' | 'store'>): {
  invitations: InvitationStore
  invitationUses: InvitationUseStore
} {
  const { invitations, invitationUses } = store
  if (settings.invitationsEnabled && invitations && invitationUses) return { invitations, invitationUses }
  throw new ConfigurationError('Invitations are off: set invitationsEnabled (AUTH_INVITATIONS_ENABLED) to true.')
}

export function isOpen({ usesLeft, revokedAt, expiresAt }: InvitationRecord, at: Date): boolean {
  return usesLeft > 0 && revokedAt === null && expiresAt > at
}

/** Also finds an invitation that is not open. */
export async function findByToken(ctx: AuthContext, token: string): Promise<InvitationRecord | null> {
  return isOpaqueToken(token) ? requireInvitations(ctx).invitations.find({ tokenHash: hashOpaqueToken(token) }) : null
}

/**
 * Call it after the captcha and the limits, and before the address is looked up and before any hash, so that the refusal tells nothing
 * about the address. Uses nothing. Null: none was given, and none is required.
 * @throws InvitationRequiredError, the same for every reason
 */
export async function requireInvitation(ctx: AuthContext, token: string | null, email: string): Promise<InvitationRecord | null> {
  if (token === null) return refuseIfRequired(ctx)
  return requireOpenFor(ctx, await findByToken(ctx, token), email)
}

/** Like `requireInvitation`, with the id that an earlier request of the same sign-up has checked. */
export async function requireInvitationById(ctx: AuthContext, id: string, email: string): Promise<InvitationRecord> {
  return requireOpenFor(ctx, await requireInvitations(ctx).invitations.find({ id }), email)
}

/**
 * For a login that verifies the address of a pending account, whose sign-up may be a stranger's. Where nobody needs an invitation, one that
 * is not good any more counts for nothing, so that it does not keep the owner out. Call it in the transaction of the login.
 */
export async function invitationOfPending(ctx: AuthContext, id: string | null, email: string): Promise<string | null> {
  if (id === null || ctx.settings.signupMode === 'invite' || !ctx.settings.invitationsEnabled) return id
  const invitation = await requireInvitations(ctx).invitations.find({ id })
  return isGoodFor(ctx, invitation, email) ? id : null
}

function requireOpenFor(ctx: AuthContext, invitation: InvitationRecord | null, email: string): InvitationRecord {
  if (!isGoodFor(ctx, invitation, email)) throw new InvitationRequiredError()
  return invitation
}

function isGoodFor(ctx: AuthContext, invitation: InvitationRecord | null, email: string): invitation is InvitationRecord {
  return invitation !== null && isOpen(invitation, ctx.now()) && (invitation.email === null || invitation.email === email)
}

function refuseIfRequired({ settings }: AuthContext): null {
  if (settings.signupMode === 'invite') throw new InvitationRequiredError()
  return null
}

interface ProvingLogin {
  readonly email: string
  /** The login itself verifies the address. */
  readonly isVerified: boolean
  /** The address has a pending account, whose sign-up may have brought an invitation. Such a login needs no other one. */
  readonly isPending: boolean
}

/**
 * For a login that creates an account or activates one. Without a token, an open invitation that was mailed to the verified address counts.
 * @throws InvitationRequiredError
 */
export async function invitationOfLogin(
  ctx: AuthContext,
  token: string | null,
  { email, isVerified, isPending }: ProvingLogin,
): Promise<InvitationRecord | null> {
  if (!ctx.settings.invitationsEnabled) return null
  if (token !== null) return requireInvitation(ctx, token, email)
  const [mailed] = isVerified ? await requireInvitations(ctx).invitations.listOpenMailed(email, ctx.now()) : []
  return mailed ?? (isPending ? null : refuseIfRequired(ctx))
}
