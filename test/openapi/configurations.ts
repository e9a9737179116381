import { newPasswordTask, OidcClient, proofOfWork, secondFactorTask } from '../../src'
import { baseUrl, type MountOptions } from '../support/app'
import { mailbox } from '../support/mailbox'
import { makeKey } from '../support/signing-keys'

type Options = Omit<MountOptions, 'knex'>

/** All that has routes, switched on. */
export const everything: Options = {
  settings: {
    tokenDelivery: 'both',
    backendLinks: true,
    emailLogin: 'both',
    mailedCodes: 'both',
    mfaEnabled: true,
    mfaIssuer: 'Example',
    trustedDeviceDays: 30,
    passkeysEnabled: true,
    signupWith: ['password', 'passkey'],
    invitationsEnabled: true,
    accountDeletion: 'soft',
    jwtKeys: [makeKey('k1', 'ES256')],
    accessTokenIssuer: `${baseUrl}/auth`,
    accessTokenAudience: 'https://api.example.test',
    oauthSuccessRedirect: '/in',
    oauthErrorRedirect: '/out',
    appRedirects: ['com.example.app:/signed-in'],
    loginUrl: '/login',
    cookieSecure: true,
  },
  options: {
    mailer: mailbox(),
    captcha: proofOfWork({ bits: 8 }),
    captchaWhen: () => false,
    loginTasks: [newPasswordTask(), secondFactorTask({ when: (user) => user.name === 'owes a factor' })],
  },
  providers: {
    corp: {},
    acme: (provider) => new OidcClient(provider.oidcOptions({ providerName: 'acme', responseMode: 'form_post' })),
  },
}

export const configurations: Readonly<Record<string, Options>> = {
  'no setting': {},
  'everything on': everything,
  'delivery cookie': { settings: { tokenDelivery: 'cookie', backendLinks: true, oauthSuccessRedirect: '/in', loginUrl: '/login' } },
  'no local accounts': { settings: { localAccountsEnabled: false, mfaEnabled: true, mfaIssuer: 'Example', tokenDelivery: 'both' } },
  'no passwords': {
    ...everything,
    settings: { ...everything.settings, passwordLogin: false },
    options: { mailer: mailbox(), loginTasks: [secondFactorTask({ when: () => false })] },
  },
  approval: {
    settings: {
      signupMode: 'approve',
      tokenDelivery: 'both',
      emailLogin: 'both',
      backendLinks: true,
      mfaEnabled: true,
      mfaIssuer: 'Example',
    },
    options: { mailer: mailbox() },
  },
  'no social login and no signup': { settings: { oauthEnabled: false, signupEnabled: false } },
}
