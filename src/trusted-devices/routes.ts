import type { Request } from 'express'
import { type AuthContext, transaction } from '../context'
import { ConfigurationError, NotFoundError, TooManyRequestsError } from '../core/errors'
import { type Answer, done, flag, instant, instantOrNull, shape, string, stringOrNull } from '../http/description'
import type { Route } from '../http/routes'
import { sendEmpty, sendJson, setResult } from '../http/send'
import { getAuth } from '../sessions/current-auth'
import { operation } from '../sessions/operation'
import type { RouteGuards } from '../sessions/routes-by-delivery'
import type { TrustedDeviceRecord, TrustedDeviceStore } from '../store/auth-store'
import { distrust } from './distrust'
import { trustedDevicesOf, trustHashOf } from './trust-cookie'

/** A trusted browser as its owner sees it. */
export interface PublicTrustedDevice extends Pick<TrustedDeviceRecord, 'id' | 'name' | 'createdAt' | 'lastUsedAt' | 'endsAt'> {
  /** True: the browser of the request. */
  readonly isCurrent: boolean
}

/** None if no browser is trusted. */
export function trustedDeviceRoutes(ctx: AuthContext, guards: RouteGuards): Route[] {
  return trustedDevicesOf(ctx) ? [...list(ctx, guards), ...remove(ctx, guards)] : []
}

function list(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'GET',
    path: '/trusted-devices',
    summary: 'List the browsers that need no second factor, newest first',
    answers: [listedDevices],
    refuses: [TooManyRequestsError],
    access: 'live session',
    limit: 'trusted_devices',
    handle: async (req, res) => {
      const devices = await listTrustedDevices(ctx, getAuth(req).sub, req)
      setResult(res, devices)
      sendJson(res, 200, devices.map(trustedDeviceBody))
    },
  })
}

function remove(ctx: AuthContext, guards: RouteGuards): Route[] {
  return operation(ctx, guards, {
    method: 'DELETE',
    path: '/trusted-devices/:id',
    summary: 'Stop trusting one browser',
    answers: [done],
    refuses: [NotFoundError, TooManyRequestsError],
    access: 'live session',
    limit: 'trusted_devices',
    handle: async (req, res) => {
      await removeTrustedDevice(ctx, getAuth(req).sub, String(req.params['id']))
      sendEmpty(res)
    },
  })
}

/** Newest first. @param req without a request, no browser is the current one @throws ConfigurationError if no browser is trusted */
export async function listTrustedDevices(ctx: AuthContext, userId: string, req?: Request): Promise<PublicTrustedDevice[]> {
  const devices = await requireTrustedDevices(ctx).listForUser(userId, ctx.now())
  const current = req ? trustHashOf(ctx, req, userId) : null
  return devices.map(({ id, name, createdAt, lastUsedAt, endsAt, tokenHash }) => ({
    id,
    name,
    createdAt,
    lastUsedAt,
    endsAt,
    isCurrent: tokenHash === current,
  }))
}

/** @throws NotFoundError unless this account has the trusted device; ConfigurationError if no browser is trusted */
export async function removeTrustedDevice(ctx: AuthContext, userId: string, id: string): Promise<void> {
  requireTrustedDevices(ctx)
  const count = await transaction(ctx, (ctx) => distrust(ctx, userId, { reason: 'removed', id }))
  if (count === 0) throw new NotFoundError()
}

function requireTrustedDevices(ctx: AuthContext): TrustedDeviceStore {
  const trustedDevices = trustedDevicesOf(ctx)
  if (trustedDevices) return trustedDevices
  throw new ConfigurationError('No browser is trusted: trustedDeviceDays (AUTH_TRUSTED_DEVICE_DAYS) is 0.')
}

const listedDevices: Answer = {
  status: 200,
  description: 'The trusted browsers. `is_current`: the browser of the request.',
  schema: {
    type: 'array',
    items: shape('TrustedDevice', {
      id: string,
      name: stringOrNull,
      created_at: instant,
      last_used_at: instantOrNull,
      ends_at: instant,
      is_current: flag,
    }),
  },
}

export function trustedDeviceBody({ id, name, createdAt, lastUsedAt, endsAt, isCurrent }: PublicTrustedDevice) {
  return {
    id,
    name,
    created_at: createdAt.toISOString(),
    last_used_at: lastUsedAt?.toISOString() ?? null,
    ends_at: endsAt.toISOString(),
    is_current: isCurrent,
  }
}
