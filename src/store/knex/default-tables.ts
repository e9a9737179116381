import type { Knex } from 'knex'
import type { IdentityRecord, RecoveryCodeRecord, RefreshTokenRecord, SessionRecord, UserRecord, UserTokenRecord } from '../auth-store'
import type { Dialect } from './dialect'
import { bindTable, type Field, type FieldKind, type Table, type TableDefinition } from './table'

export interface Tables {
  readonly users: Table<UserRecord>
  readonly identities: Table<IdentityRecord>
  readonly userTokens: Table<UserTokenRecord>
  readonly refreshTokens: Table<RefreshTokenRecord>
  readonly recoveryCodes: Table<RecoveryCodeRecord>
  readonly sessions: Table<SessionRecord>
}

export function bindTables(knex: Knex, dialect: Dialect): Tables {
  return {
    users: bindTable(usersTable, knex, dialect),
    identities: bindTable(identitiesTable, knex, dialect),
    userTokens: bindTable(userTokensTable, knex, dialect),
    refreshTokens: bindTable(refreshTokensTable, knex, dialect),
    recoveryCodes: bindTable(recoveryCodesTable, knex, dialect),
    sessions: bindTable(sessionsTable, knex, dialect),
  }
}

/** The tables `createAuthTables` makes: our field -> column, what it is, how long it may be. */
const usersTable: TableDefinition<UserRecord> = {
  table: 'auth_users',
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
  },
}

const identitiesTable: TableDefinition<IdentityRecord> = {
  table: 'auth_identities',
  fields: {
    id: field('id', 'id'),
    userId: field('user_id', 'id'),
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
  fields: {
    id: field('id', 'id'),
    userId: field('user_id', 'id'),
    tokenHash: field('token_hash', 'text', 64),
    purpose: field('purpose', 'text', 32),
    payload: field('payload', 'text'),
    expiresAt: field('expires_at', 'instant'),
    usedAt: field('used_at', 'instant'),
    createdAt: field('created_at', 'instant'),
  },
}

const refreshTokensTable: TableDefinition<RefreshTokenRecord> = {
  table: 'auth_refresh_tokens',
  fields: {
    id: field('id', 'id'),
    userId: field('user_id', 'id'),
    tokenHash: field('token_hash', 'text', 64),
    familyId: field('family_id', 'text', 36),
    parentId: field('parent_id', 'id'),
    amr: field('amr', 'text', 64),
    expiresAt: field('expires_at', 'instant'),
    familyExpiresAt: field('family_expires_at', 'instant'),
    usedAt: field('used_at', 'instant'),
    revokedAt: field('revoked_at', 'instant'),
    createdAt: field('created_at', 'instant'),
  },
}

const recoveryCodesTable: TableDefinition<RecoveryCodeRecord> = {
  table: 'auth_recovery_codes',
  fields: {
    id: field('id', 'id'),
    userId: field('user_id', 'id'),
    codeHash: field('code_hash', 'text', 64),
    usedAt: field('used_at', 'instant'),
  },
}

const sessionsTable: TableDefinition<SessionRecord> = {
  table: 'auth_sessions',
  fields: {
    id: field('id', 'id'),
    userId: field('user_id', 'id'),
    sessionHash: field('session_hash', 'text', 64),
    amr: field('amr', 'text', 64),
    ip: field('ip', 'text', 45),
    userAgent: field('user_agent', 'text'),
    createdAt: field('created_at', 'instant'),
    lastSeenAt: field('last_seen_at', 'instant'),
    expiresAt: field('expires_at', 'instant'),
  },
}

function field(column: string, kind: FieldKind, maxLength?: number): Field {
  return maxLength === undefined ? { column, kind } : { column, kind, maxLength }
}
