import { adminUserBody, findUser } from '../../admin/change-user'
import { type AuthContext, passkeysOf } from '../../context'
import { NotFoundError, ServiceUnavailableError } from '../../core/errors'
import { describeError } from '../../core/logger'
import { withTimeout } from '../../core/with-timeout'
import type { AuditRow } from '../../observers/audit-log'
import { passkeyBody, toPublicPasskey } from '../../passkeys/register'
import { listSessions, sessionBody } from '../../sessions/list-routes'
import type { UserRecord } from '../../store/auth-store'
import { listTrustedDevices, trustedDeviceBody } from '../../trusted-devices/routes'
import { trustedDevicesOf } from '../../trusted-devices/trust-cookie'

/** Everything that doorward and the app know about a person, as JSON. A feature that is off is `[]` or null. */
export interface AccountExport {
  readonly exported_at: string
  readonly user: object
  readonly identities: readonly object[]
  readonly sessions: readonly object[]
  readonly passkeys: readonly object[]
  readonly second_factor: { readonly enabled_at: string } | null
  readonly api_keys: readonly object[]
  /** The invitations that the account has used. */
  readonly invitations: readonly object[]
  /** The trusted browsers. */
  readonly devices: readonly object[]
  /** The newest 10,000, newest first. Absent without the option `auditLog`. */
  readonly events?: readonly object[]
  /** What `onExport` returned. Absent without the option. */
  readonly host?: object
}

/**
 * Contains no secret, hash or public key, and nothing that another person's request caused.
 * @throws NotFoundError; ServiceUnavailableError if `onExport` or the log fails
 */
export async function exportAccount(ctx: AuthContext, userId: string): Promise<AccountExport> {
  const user = await ctx.store.users.find(userId)
  const shown = await findUser(ctx, userId)
  if (!user || !shown) throw new NotFoundError()
  const { settings, store } = ctx
  return {
    exported_at: ctx.now().toISOString(),
    user: adminUserBody(ctx, shown),
    identities: settings.oauthEnabled ? await identitiesOf(ctx, userId) : [],
    sessions: store.sessions ? (await listSessions(ctx, userId)).map(sessionBody) : [],
    passkeys: ((await passkeysOf(ctx)?.listForUser(userId)) ?? []).map((passkey) => passkeyBody(toPublicPasskey(passkey))),
    second_factor: settings.mfaEnabled && user.totpEnabledAt ? { enabled_at: user.totpEnabledAt.toISOString() } : null,
    api_keys: [],
    invitations: settings.invitationsEnabled ? await usedInvitations(ctx, userId) : [],
    devices: trustedDevicesOf(ctx) ? (await listTrustedDevices(ctx, userId)).map(withoutCurrent) : [],
    ...(ctx.auditLog && { events: await eventsOf(ctx, user) }),
    ...(ctx.onExport && { host: await askHost(ctx, user) }),
  }
}

async function identitiesOf({ store }: AuthContext, userId: string): Promise<object[]> {
  const identities = (await store.identities?.listForUser(userId)) ?? []
  return identities.map(({ provider, subject, email, emailVerified, name, picture, createdAt, lastLoginAt }) => ({
    provider,
    subject,
    email,
    email_verified: emailVerified,
    name,
    picture,
    created_at: createdAt.toISOString(),
    last_login_at: lastLoginAt.toISOString(),
  }))
}

async function usedInvitations({ store }: AuthContext, userId: string): Promise<object[]> {
  const uses = (await store.invitationUses?.listForUser?.(userId)) ?? []
  return uses.map(({ invitationId, createdAt }) => ({ invitation_id: invitationId, used_at: createdAt.toISOString() }))
}

function withoutCurrent(device: Parameters<typeof trustedDeviceBody>[0]): object {
  const { is_current: _, ...body } = trustedDeviceBody(device)
  return body
}

const mostEvents = 10_000

/** Anybody can cause these, for example by a wrong password. Not even read: there can be very many. */
const byStrangers = ['login.failed', 'email_login.requested', 'mfa.failed', 'mail.failed', 'throttled'] as const

/** Of another person, or digests. */
const withheld: ReadonlySet<string> = new Set(['userId', 'actorId', 'clientKey', 'addressDigest', 'keyDigest'])

/** A database can give the id of a deleted account again. A column of whole seconds can round the creation up. */
const startOf = ({ createdAt }: UserRecord) => new Date(createdAt.getTime() - 1_000)

async function eventsOf({ auditLog }: AuthContext, user: UserRecord): Promise<object[]> {
  const events: AuditRow[] = []
  for (let cursor: string | null = null; events.length < mostEvents; ) {
    const page: { items: AuditRow[]; nextCursor: string | null } = (await auditLog?.list({
      userId: user.id,
      from: startOf(user),
      except: byStrangers,
      limit: 500,
      ...(cursor !== null && { cursor }),
    })) ?? {
      items: [],
      nextCursor: null,
    }
    events.push(...page.items)
    if (page.nextCursor === null) break
    cursor = page.nextCursor
  }
  return events.slice(0, mostEvents).map(({ name, payload, createdAt }) => ({
    name,
    created_at: createdAt.toISOString(),
    details: Object.fromEntries(Object.entries(payload).filter(([field]) => !withheld.has(field))),
  }))
}

const hookMs = 5_000

/** @throws ServiceUnavailableError */
async function askHost(ctx: AuthContext, user: UserRecord): Promise<object> {
  try {
    const asked = Promise.resolve().then(() => ctx.onExport?.(user))
    const given: unknown = JSON.parse(
      JSON.stringify(await withTimeout(asked, hookMs, () => new Error('onExport took longer than 5 seconds'))),
    )
    if (typeof given === 'object' && given !== null && !Array.isArray(given)) return given
    throw new Error('onExport must return an object')
  } catch (error) {
    ctx.logger.error({ userId: user.id, error: describeError(error) }, 'doorward: onExport failed, so an account was not exported')
    throw new ServiceUnavailableError({ cause: error })
  }
}
