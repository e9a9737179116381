import type { englishMails } from './english-mails'

/** `englishMails` in Brazilian Portuguese. */
export const portugueseMails: Readonly<Record<keyof typeof englishMails, string>> = {
  'mail.hello': 'Olá!',
  'mail.hello_name': 'Olá, {name}!',
  'mail.code_label': 'Seu código:',
  'mail.button_hint': 'Se o botão não funcionar, copie este link para o navegador:',
  'mail.valid.link': 'Este link vale por {duration}, até {instant} (UTC).',
  'mail.valid.code': 'Este código vale por {duration}, até {instant} (UTC).',
  'mail.valid.both': 'Você pode usar o link ou o código. Eles valem por {duration}, até {instant} (UTC).',
  'mail.signed_up': 'A conta foi criada em {time}.',
  'mail.signed_up_with': 'A conta foi criada em {time}, com {browser}.',
  'mail.login.time': 'Horário: {time}',
  'mail.login.browser': 'Navegador: {browser}',
  'mail.login.ip': 'Endereço IP: {ip}',
  'mail.recovery_code': 'Esta alteração foi confirmada com um código de recuperação. Cada código vale uma única vez.',
  'mail.passkeys_removed': 'Todas as chaves de acesso também foram removidas da sua conta.',
  'mail.can_sign_up': 'Se quiser uma conta, você pode se cadastrar com este endereço.',
  'mail.undo.why':
    'Se não foi você, desfaça as alterações com o link abaixo. Você recebe de volta seu endereço de e-mail e seu aplicativo autenticador. As formas de entrar que foram adicionadas são removidas, e todos os dispositivos são desconectados. Depois você escolhe uma nova senha. Uma chave de acesso ou um provedor que foi removido não volta, mas você pode adicioná-lo de novo.',
  'mail.undo.why_without_password':
    'Se não foi você, desfaça as alterações com o link abaixo. Você recebe de volta seu endereço de e-mail e seu aplicativo autenticador. As formas de entrar que foram adicionadas são removidas, e todos os dispositivos são desconectados. Uma chave de acesso ou um provedor que foi removido não volta, mas você pode adicioná-lo de novo.',
  'mail.undo.button': 'Desfazer as alterações',
  'mail.undo.final':
    'Esta alteração foi confirmada com seu aplicativo autenticador ou uma chave de acesso, por isso não pode ser desfeita com um link.',
  'mail.left.password': 'uma nova senha, que você escolhe com um link no nosso e-mail',
  'mail.left.email_login': 'um link ou um código que enviamos por e-mail a este endereço',
  'mail.left.identity': '“{provider}”, conectado em {date}',
  'mail.left.passkey': 'uma chave de acesso, adicionada em {date}',
  'mail.left.factor': 'seu aplicativo autenticador, configurado em {date}, como segunda etapa',
  'mail.left.no_recovery_codes': 'Seus códigos de recuperação não funcionam mais. Depois de entrar, crie novos códigos.',
  'mail.left.factor_stays':
    'A verificação em duas etapas de {date} continua ativa. Não foi você que a ativou? Use o link no nosso e-mail de {mailed}.',
  'mail.removed.password': 'a senha',
  'mail.removed.second_factor': 'a verificação em duas etapas',
  'mail.removed.sessions': 'o acesso de todos os dispositivos',
  'mail.removed.profile': 'o nome e os outros dados do perfil',
  'mail.removed.passkeys': 'todas as chaves de acesso',
  'mail.kept_identity':
    'mantido, porque a conta foi criada com ele: o provedor de login “{provider}”. Se não for seu, entre na conta e desconecte-o.',
  'mail.removed.identity': 'o provedor de login “{provider}”',
  'mail.look_at_once':
    'Se não foi você, primeiro certifique-se de que mais ninguém pode ler seus e-mails. Depois entre na conta, desconecte todos os outros dispositivos e remova toda forma de entrar que não seja sua.',
  'mail.activation.subject': 'Ative sua conta',
  'mail.activation.lead': 'Uma conta foi criada com este endereço de e-mail. Se foi você, confirme o endereço. Isso ativa a conta.',
  'mail.activation.button': 'Ativar conta',
  'mail.activation.not_you': 'Se não foi você, pode ignorar este e-mail. A conta continua inativa.',
  'mail.password_reset.subject': 'Escolha uma nova senha',
  'mail.password_reset.lead': 'Recebemos um pedido de nova senha para a sua conta. Abra o link abaixo para escolhê-la.',
  'mail.password_reset.button': 'Escolher nova senha',
  'mail.password_reset.not_you': 'Se você não fez esse pedido, pode ignorar este e-mail. Sua senha continua a mesma.',
  'mail.email_verification.subject': 'Confirme seu endereço de e-mail',
  'mail.email_verification.lead': 'Confirme que este endereço de e-mail é seu. Para isso, abra o link abaixo.',
  'mail.email_verification.button': 'Confirmar endereço',
  'mail.email_verification.not_you': 'Se você não fez esse pedido, pode ignorar este e-mail. Nada será alterado.',
  'mail.email_change.subject': 'Confirme seu novo endereço de e-mail',
  'mail.email_change.lead': 'Alguém pediu para alterar o e-mail de uma conta para o endereço abaixo. Se foi você, confirme-o.',
  'mail.email_change.button': 'Confirmar novo endereço',
  'mail.email_change.not_you': 'Se você não fez esse pedido, pode ignorar este e-mail. Nada será alterado.',
  'mail.account_restored.subject': 'Sua conta foi restaurada',
  'mail.account_restored.lead':
    'O link de um dos nossos e-mails foi usado para desfazer alterações na sua conta. Todos os dispositivos foram desconectados, e a senha antiga não funciona mais.',
  'mail.account_restored.more': 'Você pode entrar com:',
  'mail.account_restored.button': 'Escolher nova senha',
  'mail.account_restored.not_you':
    'Se não foi você, outra pessoa consegue ler seus e-mails. Proteja primeiro sua caixa de e-mail. Depois escolha uma nova senha.',
  'mail.account_restored.lead_without_password':
    'O link de um dos nossos e-mails foi usado para desfazer alterações na sua conta. Todos os dispositivos foram desconectados.',
  'mail.account_restored.button_without_password': 'Entrar',
  'mail.address_taken_back.subject': 'Sua conta voltou ao endereço de e-mail anterior',
  'mail.address_taken_back.lead':
    'O e-mail da sua conta tinha sido alterado para este endereço. Essa alteração foi desfeita com um link que enviamos ao endereço anterior. As mensagens sobre a conta não serão mais enviadas a este endereço.',
  'mail.address_taken_back.not_you': 'Se a conta é sua e não foi você, entre em contato com o nosso suporte imediatamente.',
  'mail.admin_granted.subject': 'Há um novo administrador',
  'mail.admin_granted.lead': 'Esta conta agora é de administrador:',
  'mail.admin_granted.not_you':
    'Se não foi você e ninguém avisou você sobre isso, remova este administrador e desconecte todos os dispositivos dessa conta.',
  'mail.admin_revoked.subject': 'Um administrador foi removido',
  'mail.admin_revoked.lead': 'Esta conta não é mais de administrador:',
  'mail.admin_revoked.not_you': 'Se não foi você e ninguém avisou você sobre isso, verifique imediatamente quem é administrador.',
  'mail.email_login.subject': 'Entre na sua conta',
  'mail.email_login.lead': 'Alguém pediu para entrar com este endereço de e-mail. Se foi você, continue abaixo.',
  'mail.email_login.button': 'Entrar',
  'mail.email_login.not_you': 'Se não foi você, ignore este e-mail e não o compartilhe. Quem tiver o e-mail pode entrar na sua conta.',
  'mail.confirmation_code.subject': 'Confirme que é você',
  'mail.confirmation_code.lead': 'Digite este código na página em que você o pediu, para confirmar que é você.',
  'mail.confirmation_code.not_you':
    'Se não foi você, não informe este código a ninguém. Outra pessoa entrou na sua conta. Desconecte todos os dispositivos e fale com o nosso suporte.',
  'mail.no_account.subject': 'Não há conta com este endereço',
  'mail.no_account.lead':
    'Alguém pediu para entrar com este endereço de e-mail, mas não há conta com ele. Talvez você tenha se cadastrado com outro endereço.',
  'mail.no_account.not_you': 'Se não foi você, pode ignorar este e-mail.',
  'mail.address_taken.subject': 'Você já tem uma conta',
  'mail.address_taken.lead': 'Alguém tentou criar uma conta com este endereço de e-mail, mas já existe uma. Nada foi alterado.',
  'mail.address_taken.more': 'Se foi você, entre na sua conta ou peça uma nova senha na página de login.',
  'mail.address_taken.not_you': 'Se não foi você, não é preciso fazer nada.',
  'mail.address_taken.more_without_password': 'Se foi você, entre na sua conta.',
  'mail.password_changed.subject': 'Sua senha foi alterada',
  'mail.password_changed.lead': 'A senha da sua conta acaba de ser alterada.',
  'mail.password_changed.not_you':
    'Se não foi você, peça uma nova senha na página de login imediatamente. Quando você a salvar, todos os dispositivos serão desconectados.',
  'mail.email_change_requested.subject': 'Alguém pediu para alterar seu e-mail',
  'mail.email_change_requested.lead':
    'Alguém que entrou na sua conta pediu para alterar o e-mail dela. Enviamos um link ao novo endereço. Nada muda até que alguém abra esse link e confirme.',
  'mail.email_change_requested.not_you':
    'Se não foi você, peça uma nova senha na página de login imediatamente. Quando você a salvar, essa alteração será cancelada.',
  'mail.email_changed.subject': 'Seu endereço de e-mail foi alterado',
  'mail.email_changed.lead':
    'O endereço de e-mail da sua conta acaba de ser alterado. As mensagens sobre a conta não serão mais enviadas a este endereço.',
  'mail.email_changed.not_you':
    'Se não foi você, entre em contato com o nosso suporte imediatamente. Não é mais possível recuperar a conta com este endereço.',
  'mail.email_change_taken.subject': 'Alguém tentou usar seu endereço de e-mail',
  'mail.email_change_taken.lead':
    'Alguém pediu para usar este endereço de e-mail em outra conta. Ele já pertence à sua conta, então nada foi alterado.',
  'mail.email_change_taken.more':
    'Se foi você, entre na conta que já tem este endereço. Ou escolha outro endereço para a conta que você queria alterar.',
  'mail.email_change_taken.not_you': 'Se não foi você, não é preciso fazer nada.',
  'mail.identity_linked.subject': 'Uma forma de entrar foi adicionada à sua conta',
  'mail.identity_linked.lead': 'O provedor de login “{provider}” foi conectado à sua conta. Agora você pode entrar com ele.',
  'mail.identity_linked.not_you': 'Se não foi você, desconecte-o nas configurações da sua conta e escolha uma nova senha imediatamente.',
  'mail.identity_unlinked.subject': 'Uma forma de entrar foi removida da sua conta',
  'mail.identity_unlinked.lead': 'O provedor de login “{provider}” foi desconectado da sua conta. Você não pode mais entrar com ele.',
  'mail.identity_unlinked.not_you': 'Se não foi você, escolha uma nova senha imediatamente e conecte o provedor de novo.',
  'mail.passkey_added.subject': 'Uma chave de acesso foi adicionada à sua conta',
  'mail.passkey_added.lead': 'Uma chave de acesso foi adicionada à sua conta. Agora você pode entrar com ela.',
  'mail.passkey_added.not_you': 'Se não foi você, remova-a nas configurações da sua conta e escolha uma nova senha imediatamente.',
  'mail.passkey_removed.subject': 'Uma chave de acesso foi removida da sua conta',
  'mail.passkey_removed.lead': 'Uma chave de acesso foi removida da sua conta. Você não pode mais entrar com ela.',
  'mail.passkey_removed.not_you': 'Se não foi você, escolha uma nova senha imediatamente e adicione a chave de acesso de novo.',
  'mail.mfa_enabled.subject': 'Verificação em duas etapas ativada',
  'mail.mfa_enabled.lead':
    'A partir de agora, você também precisa de um código do seu aplicativo autenticador para entrar. Guarde seus códigos de recuperação em um lugar seguro.',
  'mail.mfa_enabled.not_you': 'Se não foi você, entre em contato com o nosso suporte imediatamente.',
  'mail.mfa_replaced.subject': 'Seu aplicativo autenticador foi substituído',
  'mail.mfa_replaced.lead':
    'Outro aplicativo autenticador foi configurado na sua conta. Os códigos do aplicativo antigo e os códigos de recuperação antigos não funcionam mais.',
  'mail.mfa_replaced.not_you': 'Se não foi você, entre em contato com o nosso suporte imediatamente.',
  'mail.mfa_disabled.subject': 'Verificação em duas etapas desativada',
  'mail.mfa_disabled.lead': 'Você não precisa mais de um código do seu aplicativo autenticador para entrar.',
  'mail.mfa_disabled.not_you': 'Se não foi você, escolha uma nova senha imediatamente e ative a verificação em duas etapas de novo.',
  'mail.recovery_codes_regenerated.subject': 'Você tem novos códigos de recuperação',
  'mail.recovery_codes_regenerated.lead': 'Novos códigos de recuperação foram criados para a sua conta. Os antigos não funcionam mais.',
  'mail.recovery_codes_regenerated.not_you': 'Se não foi você, escolha uma nova senha imediatamente e crie novos códigos de recuperação.',
  'mail.account_taken_over.subject': 'Sua conta foi protegida',
  'mail.account_taken_over.lead':
    'Você acabou de confirmar que este endereço de e-mail é seu. Até então, ninguém havia confirmado isso, e talvez outra pessoa tenha criado esta conta. Por segurança, removemos o que está na lista abaixo.',
  'mail.account_taken_over.more':
    'Se foi você quem adicionou algum item da lista abaixo, entre na conta e adicione de novo. Se precisar de uma nova senha, peça uma na página de login.',
  'mail.account_taken_over.not_you':
    'Se não foi você quem confirmou o endereço, peça uma nova senha na página de login imediatamente. Outra pessoa pode estar usando sua caixa de e-mail.',
  'mail.account_taken_over.more_without_password':
    'Se foi você quem adicionou algum item da lista abaixo, entre na conta e adicione de novo.',
  'mail.account_taken_over.not_you_without_password':
    'Se não foi você quem confirmou o endereço, proteja sua caixa de e-mail imediatamente. Outra pessoa pode ter acesso a ela.',
  'mail.recovery_code_used.subject': 'Um código de recuperação foi usado',
  'mail.recovery_code_used.lead':
    'Um código de recuperação da sua conta acaba de ser usado. Cada código vale uma única vez. Crie novos códigos antes que os atuais acabem.',
  'mail.recovery_code_used.not_you': 'Se não foi você, escolha uma nova senha imediatamente e crie novos códigos de recuperação.',
  'mail.new_device.subject': 'Um novo dispositivo entrou na sua conta',
  'mail.new_device.lead': 'Alguém entrou na sua conta com um navegador que não reconhecemos.',
  'mail.new_device.not_you':
    'Se não foi você, desconecte esse dispositivo nas configurações da sua conta e escolha uma nova senha imediatamente.',
  'mail.wrong_codes.subject': 'Alguém digitou códigos errados para a sua conta',
  'mail.wrong_codes.lead':
    'Alguém digitou três códigos errados na verificação em duas etapas da sua conta. Essa pessoa talvez saiba sua senha ou já esteja conectada à sua conta.',
  'mail.wrong_codes.not_you':
    'Se não foi você, escolha uma nova senha imediatamente e desconecte todos os outros dispositivos. Nenhum desses códigos foi aceito.',
  'mail.wrong_codes.lead_without_password':
    'Alguém digitou três códigos errados na verificação em duas etapas da sua conta. Essa pessoa passou pela primeira etapa do login ou já está conectada à sua conta.',
  'mail.wrong_codes.not_you_without_password':
    'Se não foi você, proteja sua caixa de e-mail e desconecte todos os outros dispositivos imediatamente. Nenhum desses códigos foi aceito.',
}
