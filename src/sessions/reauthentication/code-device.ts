import type { Request } from 'express'
import type { AuthContext } from '../../context'
import { findKnownDevice, type KnownDevice, presentedDevice } from '../devices/known-device'
import { requestSessionOf } from './fresh-session'

/**
 * Returns the known device that typed a code. Its wrong codes have a separate limit, so other clients cannot lock the owner out. An access
 * token alone shows no known device. Call the function after `aliveSession`.
 */
export async function codeDevice(
  ctx: AuthContext,
  req: Request,
  { code, previous_token }: { code?: string | undefined; previous_token?: string | undefined },
): Promise<KnownDevice | null> {
  if (code === undefined) return null
  return findKnownDevice(ctx, requestSessionOf(req).user.email, presentedDevice(ctx, req, { previous_token }))
}
