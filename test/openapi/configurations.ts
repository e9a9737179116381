import type { MountOptions } from '../support/app'
import { makeKey } from '../support/signing-keys'

type Options = Omit<MountOptions, 'knex'>

/** All that has routes, switched on. */
export const everything: Options = {
  settings: {
    tokenDelivery: 'both',
    backendLinks: true,
    mfaEnabled: true,
    mfaIssuer: 'Example',
    jwtKeys: [makeKey('k1', 'ES256')],
    oauthSuccessRedirect: '/in',
    oauthErrorRedirect: '/out',
  },
}

export const configurations: Readonly<Record<string, Options>> = {
  'no setting': {},
  'everything on': everything,
  'delivery cookie': { settings: { tokenDelivery: 'cookie', backendLinks: true, oauthSuccessRedirect: '/in' } },
  'no social login and no signup': { settings: { oauthEnabled: false, signupEnabled: false } },
}
