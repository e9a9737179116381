import { ConfigurationError } from '../../core/errors'
import { seeTroubleshooting } from '../../core/troubleshooting'
import type {
  EmailLoginRecord,
  IdentityRecord,
  InvitationRecord,
  InvitationUseRecord,
  LeaseRecord,
  OutboxRecord,
  PasskeyRecord,
  RecoveryCodeRecord,
  SessionRecord,
  TrustedDeviceRecord,
  UserTokenRecord,
} from '../auth-store'
import type { Dialect } from './dialect'
import type { Queryable } from './queryable'
import { type Binding, bindTable, type Field, type FieldKind, type Table, type TableDefinition } from './table'
import { checkTableOptions, type MappableTable, type TableOptions } from './table-options'
import { bindUsersTable, checkUsersOptions, type OwnUserFields, type UsersTable, type UsersTableOptions } from './users-table'

export interface Tables {
  readonly users: UsersTable
  readonly identities: Table<IdentityRecord>
  readonly userTokens: Table<UserTokenRecord>
  readonly recoveryCodes: Table<RecoveryCodeRecord>
  readonly passkeys: Table<PasskeyRecord>
  readonly sessions: Table<SessionRecord>
  readonly emailLogins: Table<EmailLoginRecord>
  readonly trustedDevices: Table<TrustedDeviceRecord>
  readonly invitations: Table<InvitationRecord>
  readonly invitationUses: Table<InvitationUseRecord>
  readonly outbox: Table<OutboxRecord>
  readonly leases: Table<LeaseRecord>
}

/** Your own tables, mapped field by field. `false`: you do not have the table. */
export interface HostTables {
  /** The accounts. Default table: `auth_users`. */
  users?: UsersTableOptions
  /** Mailed links. Default table: `auth_user_tokens`. */
  userTokens?: TableOptions<UserTokenRecord>
  /** Links of accounts to providers. Default table: `auth_identities`. `false`: no such table, and no social login. */
  identities?: TableOptions<IdentityRecord> | false
  /** Recovery codes of the second factor. Default table: `auth_recovery_codes`. `false`: you do not have the table. */
  recoveryCodes?: TableOptions<RecoveryCodeRecord> | false
  /** Passkeys. Default table: `auth_passkeys`. `false`: you do not have the table, and your service has no passkeys. */
  passkeys?: TableOptions<PasskeyRecord> | false
  /** One row per session. Default table: `auth_sessions`. `false`: stateless refresh tokens, and no server-side sessions. */
  sessions?: TableOptions<SessionRecord> | false
  /** Links and codes of login by email. Default table: `auth_email_logins`. `false`: no such table, and no login by email. */
  emailLogins?: TableOptions<EmailLoginRecord> | false
  /** Trusted browsers. Default table: `auth_trusted_devices`. `false`: no such table, and `trustedDeviceDays` stays 0. */
  trustedDevices?: TableOptions<TrustedDeviceRecord> | false
  /** Invitations. Default table: `auth_invitations`. `false`: no such table, and no invitations. */
  invitations?: TableOptions<InvitationRecord> | false
  /** Who used which invitation. Default table: `auth_invitation_uses`. `false`: no such table, and no invitations. */
  invitationUses?: TableOptions<InvitationUseRecord> | false
  /** Events that wait to be delivered. Default table: `auth_outbox`. `false`: no such table, and the option `outbox` stays off. */
  outbox?: TableOptions<OutboxRecord> | false
  /** Which process purges. Default table: `auth_leases`. `false`: no such table, and no purge runs by itself. */
  leases?: TableOptions<LeaseRecord> | false
}

export const OPTIONAL_TABLES = [
  'identities',
  'recoveryCodes',
  'passkeys',
  'sessions',
  'emailLogins',
  'trustedDevices',
  'invitations',
  'invitationUses',
  'outbox',
  'leases',
] as const

/** @throws ConfigurationError for options that are unknown or wrong */
export function bindTables(knex: Queryable, dialect: Dialect, tables: HostTables = {}): Tables {
  checkHostTables(tables)
  const binding: Binding = { knex, dialect, userIds: tables.users?.ids ?? 'uuid' }
  return {
    users: bindUsersTable(usersTable, tables.users, binding),
    identities: bindTable(identitiesTable, tables.identities || undefined, binding),
    userTokens: bindTable(userTokensTable, tables.userTokens, binding),
    recoveryCodes: bindTable(recoveryCodesTable, tables.recoveryCodes || undefined, binding),
    passkeys: bindTable(passkeysTable, tables.passkeys || undefined, binding),
    sessions: bindTable(sessionsTable, tables.sessions || undefined, binding),
    emailLogins: bindTable(emailLoginsTable, tables.emailLogins || undefined, binding),
    trustedDevices: bindTable(trustedDevicesTable, tables.trustedDevices || undefined, binding),
    invitations: bindTable(invitationsTable, tables.invitations || undefined, binding),
    invitationUses: bindTable(invitationUsesTable, tables.invitationUses || undefined, binding),
    outbox: bindTable(outboxTable, tables.outbox || undefined, binding),
    leases: bindTable(leasesTable, tables.leases || undefined, binding),
  }
}

function checkHostTables(tables: HostTables): void {
  const definitions = new Map<string, MappableTable>(Object.entries(DEFINITIONS))
  const optional: readonly string[] = OPTIONAL_TABLES
  for (const [name, options] of Object.entries(tables)) {
    const definition = definitions.get(name)
    if (!definition) {
      throw new ConfigurationError(
        `createKnexStore(): ${name} is not an option; known are knex, ${[...definitions.keys()].join(', ')} and preparedStatements. ${seeTroubleshooting('unknown-names')}`,
      )
    }
    if (options === undefined || (options === false && optional.includes(name))) continue
    if (name === 'users') checkUsersOptions(options, usersTable)
    else checkTableOptions(name, options, definition)
  }
}

const usersTable: TableDefinition<OwnUserFields> = {
  table: 'auth_users',
  prefix: 'users',
  optional: {
    isAdmin: () => false,
    lastLoginAt: () => null,
    name: () => null,
    totpSecret: () => null,
    totpEnabledAt: () => null,
    totpLastStep: () => null,
    emailVerifiedAt: () => null,
    activatedAt: () => null,
    passwordSetAt: ({ createdAt }) => createdAt ?? null, // without the column, doorward assumes that the person set the password
  },
  fields: {
    id: field('id', 'id'),
    isActive: field('is_active', 'boolean'),
    createdAt: field('created_at', 'instant'),
    updatedAt: field('updated_at', 'instant'),
    email: field('email', 'text', 320),
    hashedPassword: field('hashed_password', 'text'),
    isAdmin: field('is_admin', 'boolean'),
    lastLoginAt: field('last_login_at', 'instant'),
    name: field('name', 'text'),
    totpSecret: field('totp_secret', 'text'),
    totpEnabledAt: field('totp_enabled_at', 'instant'),
    totpLastStep: field('totp_last_step', 'integer'),
    emailVerifiedAt: field('email_verified_at', 'instant'),
    activatedAt: field('activated_at', 'instant'),
    passwordSetAt: field('password_set_at', 'instant'),
    passwordExpiredAt: field('password_expired_at', 'instant'),
    approvalRequestedAt: field('approval_requested_at', 'instant'),
    deletionRequestedAt: field('deletion_requested_at', 'instant'),
  },
  onlyIfNamed: ['passwordExpiredAt', 'approvalRequestedAt', 'deletionRequestedAt'],
}

const identitiesTable: TableDefinition<IdentityRecord> = {
  table: 'auth_identities',
  prefix: 'identities',
  optional: {},
  fields: {
    id: field('id', 'id'),
    userId: field('user_id', 'userId'),
    provider: field('provider', 'text', 64),
    subject: field('subject', 'text', 255),
    email: field('email', 'text', 320),
    emailVerified: field('email_verified', 'boolean'),
    name: field('name', 'text', 200),
    picture: field('picture', 'text', 1024),
    createdAt: field('created_at', 'instant'),
    lastLoginAt: field('last_login_at', 'instant'),
  },
}

const userTokensTable: TableDefinition<UserTokenRecord> = {
  table: 'auth_user_tokens',
  prefix: 'usertokens',
  optional: {},
  fields: {
    id: field('id', 'id'),
    userId: field('user_id', 'userId'),
    tokenHash: field('token_hash', 'text', 64),
    purpose: field('purpose', 'text', 32),
    payload: field('payload', 'text'),
    expiresAt: field('expires_at', 'instant'),
    usedAt: field('used_at', 'instant'),
    createdAt: field('created_at', 'instant'),
  },
}

const recoveryCodesTable: TableDefinition<RecoveryCodeRecord> = {
  table: 'auth_recovery_codes',
  prefix: 'recoverycodes',
  optional: {},
  fields: {
    id: field('id', 'id'),
    userId: field('user_id', 'userId'),
    codeHash: field('code_hash', 'text', 64),
    usedAt: field('used_at', 'instant'),
  },
}

const passkeysTable: TableDefinition<PasskeyRecord> = {
  table: 'auth_passkeys',
  prefix: 'passkeys',
  optional: {},
  fields: {
    id: field('id', 'id'),
    userId: field('user_id', 'userId'),
    userHandle: field('user_handle', 'text', 64),
    credentialId: field('credential_id', 'text', 700),
    publicKey: field('public_key', 'text'),
    signCount: field('sign_count', 'integer'),
    transports: field('transports', 'text', 64),
    isBackupEligible: field('is_backup_eligible', 'boolean'),
    isBackedUp: field('is_backed_up', 'boolean'),
    aaguid: field('aaguid', 'text', 36),
    name: field('name', 'text', 64),
    createdAt: field('created_at', 'instant'),
    lastUsedAt: field('last_used_at', 'instant'),
  },
}

const sessionsTable: TableDefinition<SessionRecord> = {
  table: 'auth_sessions',
  prefix: 'sessions',
  keyIsGiven: true,
  optional: { amr: () => '', ip: () => null, userAgent: () => null, provider: () => null, providerSid: () => null },
  fields: {
    id: field('id', 'id'),
    userId: field('user_id', 'userId'),
    kind: field('kind', 'text', 16),
    tokenHash: field('token_hash', 'text', 64),
    generation: field('generation', 'integer'),
    rotatedAt: field('rotated_at', 'instant'),
    amr: field('amr', 'text', 64),
    authenticatedAt: field('authenticated_at', 'instant'),
    isPersistent: field('is_persistent', 'boolean'),
    ip: field('ip', 'text', 45),
    userAgent: field('user_agent', 'text'),
    provider: field('provider', 'text', 64),
    providerSid: field('provider_sid', 'text', 255),
    createdAt: field('created_at', 'instant'),
    lastSeenAt: field('last_seen_at', 'instant'),
    expiresAt: field('expires_at', 'instant'),
    endsAt: field('ends_at', 'instant'),
    revokedAt: field('revoked_at', 'instant'),
  },
}

const emailLoginsTable: TableDefinition<EmailLoginRecord> = {
  table: 'auth_email_logins',
  prefix: 'emaillogins',
  keyIsGiven: true,
  optional: { returnTo: () => null, ip: () => null, userAgent: () => null },
  onlyIfNamed: ['purpose', 'invitationId'],
  fields: {
    id: field('id', 'id'),
    email: field('email', 'text', 320),
    tokenHash: field('token_hash', 'text', 64),
    codeHash: field('code_hash', 'text', 64),
    tries: field('tries', 'integer'),
    returnTo: field('return_to', 'text'),
    ip: field('ip', 'text', 45),
    userAgent: field('user_agent', 'text'),
    createdAt: field('created_at', 'instant'),
    expiresAt: field('expires_at', 'instant'),
    usedAt: field('used_at', 'instant'),
    sessionId: field('session_id', 'text', 36),
    isKnownDevice: field('is_known_device', 'boolean'),
    purpose: field('purpose', 'text', 18),
    invitationId: field('invitation_id', 'text', 36),
  },
}

const trustedDevicesTable: TableDefinition<TrustedDeviceRecord> = {
  table: 'auth_trusted_devices',
  prefix: 'trusteddevices',
  optional: { name: () => null },
  fields: {
    id: field('id', 'id'),
    userId: field('user_id', 'userId'),
    sessionId: field('session_id', 'text', 36),
    tokenHash: field('token_hash', 'text', 64),
    digest: field('digest', 'text', 64),
    name: field('name', 'text', 64),
    createdAt: field('created_at', 'instant'),
    lastUsedAt: field('last_used_at', 'instant'),
    endsAt: field('ends_at', 'instant'),
  },
}

const invitationsTable: TableDefinition<InvitationRecord> = {
  table: 'auth_invitations',
  prefix: 'invitations',
  optional: { createdBy: () => null },
  fields: {
    id: field('id', 'id'),
    tokenHash: field('token_hash', 'text', 64),
    email: field('email', 'text', 320),
    data: field('data', 'text'),
    usesLeft: field('uses_left', 'integer'),
    isMailed: field('is_mailed', 'boolean'),
    createdBy: field('created_by', 'userId'),
    createdAt: field('created_at', 'instant'),
    expiresAt: field('expires_at', 'instant'),
    revokedAt: field('revoked_at', 'instant'),
  },
}

const invitationUsesTable: TableDefinition<InvitationUseRecord> = {
  table: 'auth_invitation_uses',
  prefix: 'invitationuses',
  optional: {},
  fields: {
    id: field('id', 'id'),
    invitationId: field('invitation_id', 'text', 36),
    userId: field('user_id', 'userId'),
    createdAt: field('created_at', 'instant'),
  },
}

const outboxTable: TableDefinition<OutboxRecord> = {
  table: 'auth_outbox',
  prefix: 'outbox',
  keyIsGiven: true,
  optional: {},
  fields: {
    id: field('id', 'id'),
    seq: field('seq', 'integer'),
    name: field('name', 'text', 64),
    userId: field('user_id', 'text', 64),
    payload: field('payload', 'text'),
    createdAt: field('created_at', 'instant'),
    tries: field('tries', 'integer'),
    nextAt: field('next_at', 'instant'),
    leasedUntil: field('leased_until', 'instant'),
    deliveredAt: field('delivered_at', 'instant'),
  },
}

const leasesTable: TableDefinition<LeaseRecord> = {
  table: 'auth_leases',
  prefix: 'leases',
  keyIsGiven: true,
  optional: {},
  fields: {
    id: field('name', 'text', 64),
    holder: field('holder', 'text', 64),
    leasedUntil: field('leased_until', 'instant'),
    ranAt: field('ran_at', 'instant'),
  },
}

const DEFINITIONS = {
  users: usersTable,
  userTokens: userTokensTable,
  identities: identitiesTable,
  recoveryCodes: recoveryCodesTable,
  passkeys: passkeysTable,
  sessions: sessionsTable,
  emailLogins: emailLoginsTable,
  trustedDevices: trustedDevicesTable,
  invitations: invitationsTable,
  invitationUses: invitationUsesTable,
  outbox: outboxTable,
  leases: leasesTable,
}

function field(column: string, kind: FieldKind, maxLength?: number): Field {
  return maxLength === undefined ? { column, kind } : { column, kind, maxLength }
}
