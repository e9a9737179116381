import { OidcClient } from '../../src'
import type { LocalHost } from '../local/people'
import { mount } from '../support/app'
import type { Database, OpenDatabase } from '../support/databases'
import type { FakeProvider } from '../support/fake-provider'
import { mailbox } from '../support/mailbox'
import { type ClientOptions, faultSettings, faultThrottle } from './faulty-app'

/** The host that prepares and looks, on a database of its own. */
export interface WellHost extends LocalHost {
  opened: OpenDatabase
  /** For another host, with the same provider behind it. */
  clients: Record<string, ClientOptions>
}

export async function wellHost(database: Database): Promise<WellHost> {
  const opened = await database.open()
  const mails = mailbox()
  const host = await mount({
    knex: opened.knex,
    settings: faultSettings,
    providers: {
      corp: (provider) => new OidcClient(clientsOf(provider).corp),
      acme: (provider) => new OidcClient(clientsOf(provider).acme),
    },
    options: { mailer: mails, throttle: faultThrottle },
  })
  const close = async () => {
    await host.close()
    await opened.close()
  }
  return { ...host, mails, opened, clients: clientsOf(host.provider), close }
}

function clientsOf(provider: FakeProvider): { corp: ClientOptions; acme: ClientOptions } {
  return {
    corp: provider.oidcOptions({ providerName: 'corp', introspectionUrl: provider.introspectionUrl }),
    acme: provider.oidcOptions({ providerName: 'acme' }),
  }
}
