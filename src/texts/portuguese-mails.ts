import type { englishMails } from './english-mails'

/** `englishMails` in Brazilian Portuguese. */
export const portugueseMails: Readonly<Record<keyof typeof englishMails, string>> = {
  'mail.hello': 'Olá!',
  'mail.hello_name': 'Olá, {name}!',
  'mail.code_label': 'Seu código:',
  'mail.button_hint': 'Se o botão não funcionar, copie este link para o navegador:',
  'mail.valid.link': 'Este link vale por {duration}, até {instant} (UTC).',
  'mail.valid.code': 'Este código vale por {duration}, até {instant} (UTC).',
  'mail.valid.both': 'O link ou o código, o que você usar, vale por {duration}, até {instant} (UTC).',
  'mail.signed_up': 'O cadastro foi feito em {time}.',
  'mail.signed_up_with': 'O cadastro foi feito em {time}, com {browser}.',
  'mail.login.time': 'Horário: {time}',
  'mail.login.browser': 'Navegador: {browser}',
  'mail.login.ip': 'Endereço IP: {ip}',
  'mail.recovery_code': 'Um código de recuperação confirmou esta alteração. Cada código vale uma única vez.',
  'mail.passkeys_removed': 'Todas as chaves de acesso também foram removidas da sua conta.',
  'mail.can_sign_up': 'Se quiser uma conta, você pode se cadastrar com este endereço.',
  'mail.undo.why':
    'Se não foi você, desfaça a alteração com o link abaixo. Sua conta volta a ser como era, todas as sessões são encerradas e você escolhe uma nova senha.',
  'mail.undo.why_without_password':
    'Se não foi você, desfaça a alteração com o link abaixo. Sua conta volta a ser como era, e todas as sessões são encerradas.',
  'mail.undo.button': 'Desfazer esta alteração',
  'mail.undo.final':
    'Seu aplicativo autenticador, ou uma chave de acesso sua, confirmou esta alteração, por isso nenhum link pode desfazê-la.',
  'mail.left.password': 'uma nova senha, escolhida com o link que enviamos a este endereço',
  'mail.left.email_login': 'um e-mail para este endereço, com o qual você entra',
  'mail.left.identity': '“{provider}”, vinculado em {date}',
  'mail.left.passkey': 'uma chave de acesso, adicionada em {date}',
  'mail.left.factor': 'seu aplicativo autenticador, configurado em {date}, como segunda etapa',
  'mail.removed.password': 'a senha',
  'mail.removed.second_factor': 'a verificação em duas etapas',
  'mail.removed.sessions': 'todas as sessões abertas',
  'mail.removed.profile': 'o nome e os dados do perfil',
  'mail.removed.passkeys': 'todas as chaves de acesso',
  'mail.removed.identity': 'o provedor de login “{provider}”',
  'mail.look_at_once': 'Se não foi você, proteja primeiro sua caixa de e-mail. Depois entre na conta e confira tudo imediatamente.',
  'mail.activation.subject': 'Ative sua conta',
  'mail.activation.lead':
    'Uma conta foi criada com este endereço de e-mail. Se foi você, confirme que o endereço é seu para ativar a conta.',
  'mail.activation.button': 'Ativar conta',
  'mail.activation.not_you': 'Se não foi você, pode ignorar este e-mail: sem essa confirmação, a conta continua inativa.',
  'mail.password_reset.subject': 'Escolha uma nova senha',
  'mail.password_reset.lead': 'Recebemos um pedido de nova senha para a sua conta. Abra o link abaixo para escolhê-la.',
  'mail.password_reset.button': 'Escolher nova senha',
  'mail.password_reset.not_you': 'Se você não fez esse pedido, pode ignorar este e-mail: sua senha continua a mesma.',
  'mail.email_verification.subject': 'Confirme seu endereço de e-mail',
  'mail.email_verification.lead': 'Confirme que este endereço de e-mail é seu. Para isso, abra o link abaixo.',
  'mail.email_verification.button': 'Confirmar endereço',
  'mail.email_verification.not_you': 'Se você não fez esse pedido, pode ignorar este e-mail: nada será alterado.',
  'mail.email_change.subject': 'Confirme seu novo endereço de e-mail',
  'mail.email_change.lead':
    'Recebemos um pedido para que uma conta passe a usar este endereço de e-mail. Se a conta é sua, confirme o endereço.',
  'mail.email_change.button': 'Confirmar novo endereço',
  'mail.email_change.not_you': 'Se você não fez esse pedido, pode ignorar este e-mail: nada será alterado.',
  'mail.account_restored.subject': 'Sua conta voltou a ser como era',
  'mail.account_restored.lead':
    'O link de um dos nossos e-mails foi usado para desfazer alterações na sua conta. Todas as sessões foram encerradas, e a senha antiga não funciona mais.',
  'mail.account_restored.more': 'O que ainda serve para entrar na conta:',
  'mail.account_restored.button': 'Escolher nova senha',
  'mail.account_restored.not_you':
    'Se não foi você, outra pessoa consegue ler seus e-mails: proteja primeiro sua caixa de e-mail e depois escolha uma nova senha.',
  'mail.account_restored.lead_without_password':
    'O link de um dos nossos e-mails foi usado para desfazer alterações na sua conta. Todas as sessões foram encerradas.',
  'mail.account_restored.button_without_password': 'Entrar',
  'mail.address_taken_back.subject': 'Sua conta voltou ao endereço de e-mail anterior',
  'mail.address_taken_back.lead':
    'Alguém com acesso ao endereço anterior da sua conta desfez a alteração para este. As mensagens sobre a conta não serão mais enviadas para cá.',
  'mail.address_taken_back.not_you': 'Se a conta é sua e não foi você, entre em contato com o nosso suporte imediatamente.',
  'mail.admin_granted.subject': 'Há uma nova conta administradora',
  'mail.admin_granted.lead': 'Esta conta passou a ser administradora:',
  'mail.admin_granted.not_you': 'Se não foi você e ninguém avisou, retire esse direito e encerre as sessões dessa conta.',
  'mail.admin_revoked.subject': 'Uma conta deixou de ser administradora',
  'mail.admin_revoked.lead': 'Esta conta não é mais administradora:',
  'mail.admin_revoked.not_you': 'Se não foi você e ninguém avisou, verifique imediatamente quem é administrador.',
  'mail.email_login.subject': 'Entre na sua conta',
  'mail.email_login.lead': 'Alguém pediu para entrar com este endereço de e-mail. Se foi você, continue com o que está abaixo.',
  'mail.email_login.button': 'Entrar',
  'mail.email_login.not_you': 'Se não foi você, ignore este e-mail e não o mostre a ninguém: quem o tiver pode entrar na sua conta.',
  'mail.confirmation_code.subject': 'Confirme que é você',
  'mail.confirmation_code.lead': 'Digite este código onde você está conectado para confirmar que é você.',
  'mail.confirmation_code.not_you':
    'Se não foi você, não informe este código a ninguém. Alguém está conectado à sua conta: saia de todos os dispositivos e fale com o nosso suporte.',
  'mail.no_account.subject': 'Não há conta com este endereço',
  'mail.no_account.lead':
    'Alguém pediu para entrar com este endereço de e-mail, mas não há conta com ele. Talvez você tenha usado outro endereço.',
  'mail.no_account.not_you': 'Se não foi você, pode ignorar este e-mail.',
  'mail.address_taken.subject': 'Você já tem uma conta',
  'mail.address_taken.lead': 'Alguém tentou criar uma conta com este endereço de e-mail, mas ele já pertence a uma. Nada foi alterado.',
  'mail.address_taken.more': 'Se foi você, entre na sua conta ou peça uma nova senha.',
  'mail.address_taken.not_you': 'Se não foi você, não é preciso fazer nada.',
  'mail.address_taken.more_without_password': 'Se foi você, entre na sua conta.',
  'mail.password_changed.subject': 'Sua senha foi alterada',
  'mail.password_changed.lead': 'A senha da sua conta acaba de ser alterada.',
  'mail.password_changed.not_you':
    'Se não foi você, peça uma nova senha imediatamente: ao escolhê-la, todas as sessões da sua conta são encerradas.',
  'mail.email_change_requested.subject': 'Pedido de alteração do seu e-mail',
  'mail.email_change_requested.lead':
    'Alguém com acesso à sua conta pediu para alterar o endereço de e-mail dela. Enviamos um link ao novo endereço; até que a alteração seja confirmada por lá, nada muda.',
  'mail.email_change_requested.not_you':
    'Se não foi você, peça uma nova senha imediatamente: ao escolhê-la, você também cancela essa alteração.',
  'mail.email_changed.subject': 'Seu endereço de e-mail foi alterado',
  'mail.email_changed.lead':
    'O endereço de e-mail da sua conta acaba de ser alterado. As mensagens sobre a conta não serão mais enviadas a este endereço.',
  'mail.email_changed.not_you':
    'Se não foi você, entre em contato com o nosso suporte imediatamente: este endereço já não permite recuperar a conta.',
  'mail.email_change_taken.subject': 'Alguém quis usar seu endereço de e-mail',
  'mail.email_change_taken.lead':
    'Alguém pediu para usar este endereço de e-mail em outra conta. Como ele já pertence à sua, nada foi alterado.',
  'mail.email_change_taken.more':
    'Se foi você, entre na conta que já usa este endereço ou escolha um endereço diferente para a outra conta.',
  'mail.email_change_taken.not_you': 'Se não foi você, não é preciso fazer nada.',
  'mail.identity_linked.subject': 'Nova forma de entrar na sua conta',
  'mail.identity_linked.lead': 'O provedor de login “{provider}” foi vinculado à sua conta. A partir de agora, é possível entrar com ele.',
  'mail.identity_linked.not_you': 'Se não foi você, desvincule-o nas configurações da sua conta e troque a senha imediatamente.',
  'mail.identity_unlinked.subject': 'Uma forma de entrar na sua conta foi removida',
  'mail.identity_unlinked.lead':
    'O provedor de login “{provider}” foi desvinculado da sua conta e não pode mais ser usado para entrar nela.',
  'mail.identity_unlinked.not_you': 'Se não foi você, troque a senha imediatamente e vincule-o de novo.',
  'mail.passkey_added.subject': 'Uma chave de acesso foi adicionada à sua conta',
  'mail.passkey_added.lead': 'Uma chave de acesso foi adicionada à sua conta. A partir de agora, é possível entrar com ela.',
  'mail.passkey_added.not_you': 'Se não foi você, remova-a nas configurações da sua conta e troque a senha imediatamente.',
  'mail.passkey_removed.subject': 'Uma chave de acesso foi removida da sua conta',
  'mail.passkey_removed.lead': 'Uma chave de acesso foi removida da sua conta e não pode mais ser usada para entrar nela.',
  'mail.passkey_removed.not_you': 'Se não foi você, troque a senha imediatamente e adicione a chave de acesso de novo.',
  'mail.mfa_enabled.subject': 'Verificação em duas etapas ativada',
  'mail.mfa_enabled.lead':
    'A partir de agora, para entrar na sua conta também é preciso um código do seu aplicativo autenticador. Guarde seus códigos de recuperação em um lugar seguro.',
  'mail.mfa_enabled.not_you': 'Se não foi você, entre em contato com o nosso suporte imediatamente.',
  'mail.mfa_replaced.subject': 'Seu aplicativo autenticador foi substituído',
  'mail.mfa_replaced.lead':
    'Outro aplicativo autenticador foi configurado na sua conta. Os códigos do anterior e os seus códigos de recuperação antigos não funcionam mais.',
  'mail.mfa_replaced.not_you': 'Se não foi você, entre em contato com o nosso suporte imediatamente.',
  'mail.mfa_disabled.subject': 'Verificação em duas etapas desativada',
  'mail.mfa_disabled.lead': 'Para entrar na sua conta, já não é preciso um código do seu aplicativo autenticador.',
  'mail.mfa_disabled.not_you': 'Se não foi você, troque a senha imediatamente e ative a verificação em duas etapas de novo.',
  'mail.recovery_codes_regenerated.subject': 'Você tem novos códigos de recuperação',
  'mail.recovery_codes_regenerated.lead': 'Novos códigos de recuperação foram gerados para a sua conta. Os antigos não funcionam mais.',
  'mail.recovery_codes_regenerated.not_you': 'Se não foi você, troque a senha imediatamente e gere novos códigos de recuperação.',
  'mail.account_taken_over.subject': 'Sua conta foi protegida',
  'mail.account_taken_over.lead':
    'Você acabou de confirmar que este endereço de e-mail é seu. Até então ninguém havia confirmado, e outra pessoa poderia ter preparado a conta. Por segurança, removemos o que está na lista abaixo.',
  'mail.account_taken_over.more':
    'Se algo disso era seu, entre na conta e configure de novo. Se precisar de uma nova senha, peça uma com este endereço.',
  'mail.account_taken_over.not_you':
    'Se não foi você quem confirmou o endereço, peça uma nova senha imediatamente: outra pessoa pode estar usando seu e-mail.',
  'mail.account_taken_over.more_without_password': 'Se algo disso era seu, entre na conta e configure de novo.',
  'mail.account_taken_over.not_you_without_password':
    'Se não foi você quem confirmou o endereço, proteja sua caixa de e-mail imediatamente: outra pessoa pode estar usando-a.',
  'mail.recovery_code_used.subject': 'Um código de recuperação foi usado',
  'mail.recovery_code_used.lead':
    'Um código de recuperação da sua conta acaba de ser usado. Cada código vale uma única vez: gere novos antes que acabem.',
  'mail.recovery_code_used.not_you': 'Se não foi você, troque a senha imediatamente e gere novos códigos de recuperação.',
  'mail.new_device.subject': 'Um novo dispositivo entrou na sua conta',
  'mail.new_device.lead': 'Alguém entrou na sua conta em um navegador que ainda não tinha sido usado para isso.',
  'mail.new_device.not_you':
    'Se não foi você, encerre a sessão desse dispositivo nas configurações da sua conta e troque a senha imediatamente.',
  'mail.wrong_codes.subject': 'Códigos errados foram digitados na sua conta',
  'mail.wrong_codes.lead':
    'Três códigos errados da verificação em duas etapas foram digitados na sua conta. Quem os digitou conhece a primeira etapa do login, como a sua senha.',
  'mail.wrong_codes.not_you': 'Se não foi você, troque a senha imediatamente. Ninguém entrou na sua conta com esses códigos.',
  'mail.wrong_codes.lead_without_password':
    'Três códigos errados da verificação em duas etapas foram digitados na sua conta. Quem os digitou passou pela primeira etapa.',
  'mail.wrong_codes.not_you_without_password':
    'Se não foi você, proteja sua caixa de e-mail imediatamente. Ninguém entrou na sua conta com esses códigos.',
}
