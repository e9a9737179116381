import { connections, removeConnection } from './account/connections'
import { devices } from './account/devices'
import { email } from './account/email'
import { overview } from './account/overview'
import { addPasskey, passkeyRemoval, passkeyRenaming } from './account/passkeys'
import { password } from './account/password'
import { profile } from './account/profile'
import { authenticator, recoveryCodes, security, turnOffFactor } from './account/security'
import type { AccountPage } from './account-page'

/** The pages of the account area, in the order of the navigation. */
export const accountPages: readonly AccountPage[] = [
  overview,
  profile,
  email,
  password,
  security,
  authenticator,
  recoveryCodes,
  turnOffFactor,
  addPasskey,
  passkeyRenaming,
  passkeyRemoval,
  connections,
  removeConnection,
  devices,
]
