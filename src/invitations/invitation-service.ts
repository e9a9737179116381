import type { AuthContext } from '../context'
import type { Locale } from '../http/locale'
import {
  type CreatedInvitation,
  createInvitation,
  type InvitationList,
  type InvitationListQuery,
  listInvitations,
  type NewInvitation,
  resendInvitation,
  revokeInvitation,
} from './manage-invitations'
import { redeemInvitation } from './redeem-invitation'

/** Invitations, without HTTP. No rate limit of an administrator counts these calls. */
export interface InvitationService {
  /**
   * Creates an invitation, and mails it if `send` is true.
   * @param input.by the id of the administrator. The invited person sees the name
   * @throws ValidationError
   */
  create(input?: NewInvitation & { by?: string | null | undefined }): Promise<CreatedInvitation>
  /** Lists the invitations, newest first, without tokens. @throws ValidationError */
  list(query?: InvitationListQuery): Promise<InvitationList>
  /** Revokes an invitation. Accounts that have used it stay. @throws NotFoundError */
  revoke(id: string, options?: { by?: string | null | undefined }): Promise<void>
  /** Mails a new token. The old token ends. @throws NotFoundError; ConflictError unless the invitation was mailed and is open */
  resend(id: string, options?: { locale?: Locale | undefined }): Promise<void>
  /**
   * Uses an invitation for an active account, and calls `onInvitationAccepted`. A second call of the same account changes nothing.
   * @throws InvitationRequiredError; NotFoundError if there is no active account with this id
   */
  redeem(userId: string, token: string): Promise<void>
}

export function invitationService(ctx: AuthContext): InvitationService {
  return {
    create: async ({ by = null, ...input } = {}) => createInvitation(ctx, input, { by, isLimited: false }),
    list: async (query) => listInvitations(ctx, query),
    revoke: async (id, { by = null } = {}) => revokeInvitation(ctx, id, by),
    resend: async (id, options) => resendInvitation(ctx, id, options),
    redeem: async (userId, token) => redeemInvitation(ctx, userId, token),
  }
}
